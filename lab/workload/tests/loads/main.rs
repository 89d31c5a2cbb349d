//! filebench's personalities and YCSB's workloads against a drive that takes 10 us for anything and notes what it was
//! asked: what they do, how much of each, and that no request is out of place.

mod drive;
mod filebench;
mod ycsb;
