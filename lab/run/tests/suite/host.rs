//! A host without a workload: a file system on a drive of a rig, over a connection without metering.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Profile;
use nandscape_lab_run::{Precondition, Rig, RigDrive, Wanted};
use nandscape_lab_workload::{Client, FileSystem, FileSystemOptions, Unmetered};
use nandscape_sim::{Seed, Span};

#[test]
fn a_file_system_runs_on_any_drive() {
    let mut profile = Profile::load("default").unwrap();
    profile.set("capacity=256MiB").unwrap();
    let drive = RigDrive {
        name: "drive".to_owned(),
        profile: profile.resolve().unwrap(),
        store: StoreKind::None,
        precondition: Precondition::None,
        seed: Seed::new(1),
    };
    let mut rig = Rig::build(vec![drive], Wanted::default(), &()).unwrap();
    let client = Client::new(rig.sim(), Rc::new(Unmetered), rig.connect(0, 64).unwrap());
    let options = FileSystemOptions { cache: 0, journal: true, commit_interval: Span::from_s(1) };
    let took = rig
        .run(async {
            let begun = client.sim().now();
            let files = FileSystem::new(&client, 16, options).unwrap();
            let file = files.add_file(files.lay_out_directory(16).unwrap());
            files.create(file).await.unwrap();
            files.append(file, 1 << 20).await.unwrap();
            files.fsync().await.unwrap();
            files.read(file, 0, 1 << 20).await.unwrap();
            assert_eq!(files.bytes(file), 1 << 20);
            client.sim().now() - begun
        })
        .unwrap();
    let written = rig.ssds().next().unwrap().ftl_stats().host_bytes;
    assert!((1 << 20..(1 << 20) + (64 << 10)).contains(&written), "the file and its metadata: {written} bytes");
    assert!(took > Span::from_us(60), "the data is read from flash or buffer in drive time: {took}");
}
