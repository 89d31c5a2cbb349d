//! Chains in TOML files.

use nandscape_lab_run::chain::{Chain, LayerWords};

#[test]
fn a_file_is_the_chain_of_its_tables() {
    let text = "version = 1\n[[layer]]\nkind = \"ftl\"\nmoves = \"copy\"\nbuffer.size = \"1MiB\"\n\
                [[layer]]\nkind = \"raid1:2\"\nname = \"low\"\nspares = 1\n[[layer]]\nkind = \"cache\"\n";
    let chain = Chain::of_toml(text).unwrap();
    let words: Vec<String> = chain.layers.iter().map(LayerWords::to_string).collect();
    assert_eq!(words[1..], ["low=raid1:2,spares=1", "cache"]);
    let mut set = chain.layers[0].set.clone();
    set.sort_unstable();
    assert_eq!((&*chain.layers[0].kind, set), ("ftl", vec!["buffer.size=1MiB".to_owned(), "moves=copy".to_owned()]));
    // What a recording stores.
    assert_eq!(chain.to_string().parse(), Ok(chain));
}

#[test]
fn layers_of_a_file_name_what_they_lie_over() {
    let text = "version = 1\n[[layer]]\nkind = \"cache\"\nname = \"fast\"\nover = \"drive-1\"\n\
                [[layer]]\nkind = \"raid1:2\"\nover = [\"drive-0\", \"fast\"]\n";
    let chain = Chain::of_toml(text).unwrap();
    let words: Vec<String> = chain.layers.iter().map(LayerWords::to_string).collect();
    assert_eq!(words, ["fast=cache,over=drive-1", "raid1:2,over=drive-0+fast"]);
    assert_eq!(chain.to_string().parse(), Ok(chain));
}

#[test]
fn a_file_that_is_wrong_is_rejected_with_the_place() {
    for (text, problem) in [
        ("[[layer]]\nkind = \"block\"\n", "missing field `version`"),
        ("version = 2\n", "version = 2: 1 is valid"),
        ("version = 1\n", "it has no layer; a table [[layer]]"),
        ("version = 1\n[[layers]]\n", "unknown field `layers`"),
        ("version = 1\n[[layer]]\nname = \"a\"\n", "layer 1: it has no kind; kind = \"block\" is valid"),
        (
            "version = 1\n[[layer]]\nkind = \"cache\"\n[[layer]]\nkind = \"blok\"\n",
            "layer 2: \"blok\": there is no layer",
        ),
        ("version = 1\n[[layer]]\nkind = \"cache\"\nmemory = [1]\n", "layer 1: memory: array is not valid"),
        (
            "version = 1\n[[layer]]\nkind = \"cache\"\nover = \"x\"\n",
            "cache: over=x: no such drive or layer is at the top",
        ),
        ("version = 1\n[[layer]]\nkind = \"cache\"\nover = [[1]]\n", "layer 1: over: array is not valid"),
        ("version = 1\n[[layer]]\nkind = \"cache\"\nmemory = \"1, 2\"\n", "layer 1: memory = \"1, 2\": a value has"),
        ("version = 1\n[[layer]]\nkind = \"cache\"\nmemory = 1\n", "a size of a page"),
        ("version = 1\n[[layer]]\nkind = \"a=cache\"\nname = \"b\"\n", "layer 1"),
    ] {
        let error = Chain::of_toml(text).unwrap_err();
        assert!(error.contains(problem), "{text:?}: {error}");
    }
}
