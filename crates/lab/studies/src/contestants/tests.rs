use std::sync::atomic::AtomicBool;

use super::*;

/// Deleted, a peer that tells its address in another way would be found out by a study of half an hour only.
#[test]
fn peers_tell_where_they_listen() {
    let (address, version) =
        serving::read_ready("listening on 127.0.0.1:4433 with quinn 0.11.12, h3 0.0.8").unwrap();
    assert_eq!((address.port(), version.as_str()), (4433, "quinn 0.11.12, h3 0.0.8"));
    for other in ["", "listening on", "listening on nowhere with x 1", "listening on 127.0.0.1:1"] {
        assert_eq!(serving::read_ready(other), None, "{other}");
    }
}

/// Deleted, a server that is not installed could vanish from the tables without a word.
#[test]
fn missing_contestants_are_told() {
    let field = look(Path::new("/nowhere/else/tercel"), &[Http::Three]);
    let names: Vec<&str> = field.installed.iter().map(|installed| installed.who.name()).collect();
    assert_eq!(names.first(), Some(&"tercel"), "ours is first");
    let speakers = Contestant::ALL.iter().filter(|who| who.speaks().contains(&Http::Three)).count();
    assert_eq!(field.installed.len() + field.absent.len(), speakers);
    assert!(!names.contains(&"nginx"), "nginx has no HTTP/3 here");
    assert!(field.absent.iter().all(|line| line.contains("is not here: ")), "{:?}", field.absent);
}

/// Deleted, a configuration that nginx or Caddy does not accept would be noticed only where they are installed and a study runs.
#[test]
fn web_servers_of_the_distribution_serve_the_files() {
    let ground = TestSite::prepare().unwrap();
    if let Some(problem) = &ground.problem {
        println!("on loopback: {problem}");
    }
    assert_eq!(std::fs::metadata(ground.files().join(SMALL.0)).unwrap().len(), SMALL.1);
    assert_eq!(std::fs::metadata(ground.files().join(LARGE.0)).unwrap().len(), LARGE.1);
    ground.multiply(SMALL, 3).unwrap();
    let read = |at| std::fs::read(ground.files().join(ground::name_of(SMALL.0, at))).unwrap();
    assert!(read(1).len() as u64 == SMALL.1 && read(0) != read(1) && read(1) != read(2));
    for installed in look(Path::new("/nowhere/else/tercel"), &Http::ALL).installed {
        if !matches!(installed.who, Contestant::Nginx | Contestant::Caddy) {
            continue;
        }
        let core = cpu::first_two()[0];
        let serving = installed.start(&ground, core, &AtomicBool::new(false)).unwrap();
        assert!(serving.cpu_seconds().is_ok() && !serving.version.is_empty(), "{serving:?}");
        let pid = serving.id();
        serving.stop();
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{} lives on", installed.who.name());
    }
}
