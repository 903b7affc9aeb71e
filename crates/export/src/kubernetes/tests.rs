use mcp_policy::{Defaults, Layer, LayerKind, LayerSource, Policy};
use serde_json::Value;

use super::*;
use crate::server::Start;
use crate::yaml::tests::read;

fn policy(toml: &str) -> Policy {
    let source = LayerSource {
        kind: LayerKind::PolicyFile,
        path: "policy.toml".into(),
        base: "/srv".into(),
        home: None,
    };
    let layer = Layer::from_toml(toml, source).unwrap();
    Policy::merge(&[layer], Defaults::run()).unwrap()
}

fn server(toml: &str) -> Server {
    Server {
        name: "My_notes".to_owned(),
        policy: policy(toml),
        options: Vec::new(),
        start: Start::Command(vec!["notes-server".to_owned()]),
    }
}

fn options() -> Options {
    Options {
        image: Image::pinned(&format!("registry.example.com/notes@sha256:{}", "0a".repeat(32)))
            .unwrap(),
        mcp: "/opt/mcp/bin/mcp".to_owned(),
        namespace: Some("team-a".to_owned()),
        kind: Kind::Deployment { replicas: 1 },
        names: Names::ByPort,
        ingress_namespaces: vec!["ingress-nginx".to_owned()],
        volumes: Vec::new(),
    }
}

fn documents(server: &Server, options: &Options) -> Vec<Value> {
    let export = export(server, &Settings::default(), options).unwrap();
    read(&export.files[0].text)
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents.iter().find(|it| it["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

/// The rules of the Pod Security Standard `restricted`, each as it stands there.
pub(crate) fn is_restricted(pod: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    let mut must = |holds: bool, rule: &str| {
        if !holds {
            broken.push(rule.to_owned());
        }
    };
    for key in ["hostNetwork", "hostPID", "hostIPC"] {
        must(pod[key].is_null() || pod[key] == false, key);
    }
    let allowed = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    for volume in pod["volumes"].as_array().into_iter().flatten() {
        let kinds = volume.as_object().unwrap().keys().filter(|key| *key != "name");
        for kind in kinds {
            must(allowed.contains(&kind.as_str()), &format!("volume of type {kind}"));
        }
    }
    let outer = &pod["securityContext"];
    for container in pod["containers"].as_array().into_iter().flatten() {
        let own = &container["securityContext"];
        must(own["privileged"].is_null() || own["privileged"] == false, "privileged");
        must(own["allowPrivilegeEscalation"] == false, "allowPrivilegeEscalation");
        let non_root = |it: &Value| it["runAsNonRoot"] == true;
        must(non_root(own) || (own["runAsNonRoot"].is_null() && non_root(outer)), "runAsNonRoot");
        must(own["runAsUser"] != 0 && outer["runAsUser"] != 0, "runAsUser");
        let profile = match own["seccompProfile"]["type"].as_str() {
            Some(own) => Some(own),
            None => outer["seccompProfile"]["type"].as_str(),
        };
        must(matches!(profile, Some("RuntimeDefault" | "Localhost")), "seccompProfile");
        let dropped = own["capabilities"]["drop"].as_array();
        must(dropped.is_some_and(|all| all.iter().any(|it| it == "ALL")), "capabilities.drop");
        let added = own["capabilities"]["add"].as_array();
        must(
            added.is_none_or(|all| all.iter().all(|it| it == "NET_BIND_SERVICE")),
            "capabilities.add",
        );
        must(own["procMount"].is_null() || own["procMount"] == "Default", "procMount");
        let ports = container["ports"].as_array().into_iter().flatten();
        must(ports.clone().all(|port| port["hostPort"].is_null()), "hostPort");
    }
    broken
}

#[test]
fn a_pod_is_restricted_and_has_nothing_of_the_cluster() {
    let all = documents(&server(""), &options());
    let pod = &of_kind(&all, "Deployment")["spec"]["template"]["spec"];
    assert_eq!(is_restricted(pod), Vec::<String>::new());
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["enableServiceLinks"], false);
    assert_eq!(pod["hostUsers"], false);
    let container = &pod["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["command"][1], "serve");
    assert!(container["image"].as_str().unwrap().contains("@sha256:"));
    let tmp = pod["volumes"].as_array().unwrap().iter().find(|it| it["name"] == "tmp").unwrap();
    assert_eq!(tmp["emptyDir"]["medium"], "Memory");
    assert_eq!(tmp["emptyDir"]["sizeLimit"], "2Gi");
    assert!(container["resources"]["limits"]["memory"].is_string());
}

/// The control of the test above: the rules notice what they are about.
#[test]
fn the_rules_notice_a_pod_that_is_not_restricted() {
    let all = documents(&server(""), &options());
    let good = &of_kind(&all, "Deployment")["spec"]["template"]["spec"];
    let changes: [(&str, Value); 9] = [
        ("/hostNetwork", true.into()),
        ("/containers/0/securityContext/privileged", true.into()),
        ("/containers/0/securityContext/allowPrivilegeEscalation", true.into()),
        ("/containers/0/securityContext/runAsNonRoot", false.into()),
        ("/securityContext/runAsUser", 0.into()),
        ("/containers/0/securityContext/seccompProfile/type", "Unconfined".into()),
        ("/containers/0/securityContext/capabilities/drop", Value::Array(vec![])),
        ("/containers/0/securityContext/procMount", "Unmasked".into()),
        ("/containers/0/ports/0/hostPort", 1.into()),
    ];
    for (path, value) in changes {
        let mut bad = good.clone();
        let (parent, key) = path.rsplit_once('/').unwrap();
        bad.pointer_mut(parent).unwrap()[key] = value;
        assert_eq!(is_restricted(&bad).len(), 1, "{path}");
    }
    let mut bad = good.clone();
    bad["volumes"][0] = serde_json::json!({"name": "x", "hostPath": {"path": "/"}});
    assert_eq!(is_restricted(&bad).len(), 1);
}

#[test]
fn nothing_is_reachable_by_default() {
    let all = documents(&server(""), &options());
    let spec = &of_kind(&all, "NetworkPolicy")["spec"];
    assert_eq!(spec["policyTypes"], serde_json::json!(["Ingress", "Egress"]));
    assert_eq!(spec["egress"], serde_json::json!([]));
    let ingress = spec["ingress"].as_array().unwrap();
    assert_eq!(ingress.len(), 1);
    assert_eq!(ingress[0]["from"][0]["podSelector"]["matchLabels"]["mcp-client/my-notes"], "true");
    assert_eq!(ingress[0]["ports"][0]["port"], 8808);
}

#[test]
fn rules_do_not_become_wider() {
    let rules = "[network]\nallow = ['10.1.0.0/16:5432', 'udp://9.9.9.9:53', '10.2.0.0/16:*', 'api.example.com']\n";
    let all = documents(&server(rules), &options());
    let egress = of_kind(&all, "NetworkPolicy")["spec"]["egress"].as_array().unwrap();
    // Neither list may be missing: that would be everything.
    for rule in egress {
        assert!(!rule["to"].as_array().unwrap().is_empty(), "{rule}");
        assert!(!rule["ports"].as_array().unwrap().is_empty(), "{rule}");
    }
    let block =
        |cidr: &str| egress.iter().find(|it| it["to"][0]["ipBlock"]["cidr"] == cidr).unwrap();
    assert_eq!(
        block("10.1.0.0/16")["ports"],
        serde_json::json!([{"port": 5432, "protocol": "TCP"}])
    );
    assert_eq!(block("9.9.9.9/32")["ports"], serde_json::json!([{"port": 53, "protocol": "UDP"}]));
    // Every port of one protocol, and not every protocol.
    assert_eq!(
        block("10.2.0.0/16")["ports"],
        serde_json::json!([{"endPort": 65535, "port": 1, "protocol": "TCP"}])
    );
    let public = block("0.0.0.0/0");
    assert!(
        public["to"][0]["ipBlock"]["except"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it == "10.0.0.0/8")
    );
    assert_eq!(public["ports"].as_array().unwrap().len(), 2);
    let dns = egress
        .iter()
        .filter(|it| it["ports"][0]["port"] == 53 && it["to"][0]["podSelector"].is_object());
    assert_eq!(dns.count(), 1);
}

#[test]
fn with_cilium_no_rule_for_names_is_left_in_the_other_policy() {
    let options = Options { names: Names::Cilium, ..options() };
    let all =
        documents(&server("[network]\nallow = ['*.example.com', 'api.test:8443']\n"), &options);
    assert_eq!(of_kind(&all, "NetworkPolicy")["spec"]["egress"], serde_json::json!([]));
    let egress = of_kind(&all, "CiliumNetworkPolicy")["spec"]["egress"].as_array().unwrap();
    assert_eq!(egress[1]["toFQDNs"][0]["matchPattern"], "**.example.com");
    assert_eq!(egress[2]["toFQDNs"][0]["matchName"], "api.test");
    assert_eq!(egress[2]["toPorts"][0]["ports"][0]["port"], "8443");
    assert_eq!(egress[0]["toPorts"][0]["rules"]["dns"].as_array().unwrap().len(), 2);
}

#[test]
fn a_sandbox_has_the_same_pod() {
    let options = Options {
        kind: Kind::Sandbox {
            shutdown: Shutdown::Delete,
            shutdown_time: None,
            deadline: Some(Duration::from_secs(3600)),
        },
        ..options()
    };
    let all = documents(&server(""), &options);
    let sandbox = of_kind(&all, "Sandbox");
    assert_eq!(sandbox["apiVersion"], "agents.x-k8s.io/v1beta1");
    let spec = &sandbox["spec"];
    assert_eq!(spec["operatingMode"], "Running");
    assert_eq!(spec["shutdownPolicy"], "Delete");
    assert_eq!(spec["service"], true);
    assert_eq!(is_restricted(&spec["podTemplate"]["spec"]), Vec::<String>::new());
    assert_eq!(spec["podTemplate"]["spec"]["activeDeadlineSeconds"], 3600);
    assert!(all.iter().all(|it| it["kind"] != "Service" && it["kind"] != "Deployment"));
}

#[test]
fn secrets_are_references_and_files() {
    let all = documents(&server("[env.secrets]\nTOKEN = 'cmd:pass show x'\n"), &options());
    let pod = &of_kind(&all, "Deployment")["spec"]["template"]["spec"];
    let volumes = pod["volumes"].as_array().unwrap();
    assert!(volumes.iter().any(|it| it["secret"]["secretName"] == "my-notes-secrets"));
    let policy = of_kind(&all, "ConfigMap")["data"]["policy.toml"].as_str().unwrap();
    assert!(policy.contains("TOKEN = \"file:/run/mcp/secrets/TOKEN\""), "{policy}");
    assert!(!policy.contains("pass show"), "{policy}");
}

#[test]
fn a_written_path_needs_a_volume() {
    let server = server("[filesystem]\nwrite = ['/srv/notes']\n");
    let refused = export(&server, &Settings::default(), &options()).unwrap_err().to_string();
    assert!(refused.contains("--volume /srv/notes=CLAIM"), "{refused}");
    let volumes = vec![GrantedVolume {
        path: "/srv/notes".to_owned(),
        source: GrantedSource::Claim("notes-data".to_owned()),
    }];
    let options = Options { volumes, ..options() };
    let all = documents(&server, &options);
    let container = &of_kind(&all, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    let mounts = container["volumeMounts"].as_array().unwrap();
    let mount = mounts.iter().find(|it| it["mountPath"] == "/srv/notes").unwrap();
    assert!(mount["readOnly"].is_null());
    for claim in ["Notes", "a\nb", ""] {
        let mut options = options.clone();
        options.volumes[0].source = GrantedSource::Claim(claim.to_owned());
        assert!(export(&server, &Settings::default(), &options).is_err(), "{claim:?}");
    }
}

#[test]
fn values_cannot_become_other_yaml() {
    let hostile = "a\n---\nkind: Secret\n\"'#{}[]|>%@`\t\u{85}\u{2028}";
    let mut server = server("");
    server.start = Start::Command(vec![hostile.to_owned(), hostile.to_owned()]);
    let mut layer = Layer::command_line(std::path::PathBuf::from("/"), None);
    layer.env_set("X".parse().unwrap(), hostile);
    server.policy = Policy::merge(&[layer.build().unwrap()], Defaults::run()).unwrap();
    let all = documents(&server, &options());
    let kinds: Vec<&str> = all.iter().filter_map(|it| it["kind"].as_str()).collect();
    assert_eq!(kinds, ["ConfigMap", "NetworkPolicy", "Deployment", "Service"]);
    let data = &of_kind(&all, "ConfigMap")["data"];
    let servers: toml::Table = data["servers.toml"].as_str().unwrap().parse().unwrap();
    assert_eq!(servers["servers"]["My_notes"]["run"][3].as_str(), Some(hostile));
    let policy: toml::Table = data["policy.toml"].as_str().unwrap().parse().unwrap();
    assert_eq!(policy["env"]["set"]["X"].as_str(), Some(hostile));
}

#[test]
fn several_pods_keep_a_session_with_its_client() {
    let options = Options { kind: Kind::Deployment { replicas: 3 }, ..options() };
    let all = documents(&server(""), &options);
    assert_eq!(of_kind(&all, "Service")["spec"]["sessionAffinity"], "ClientIP");
    assert_eq!(of_kind(&all, "Deployment")["spec"]["replicas"], 3);
}

#[test]
fn what_a_pod_cannot_say_is_said() {
    let policy = "[filesystem]\nread = ['/srv']\ndeny = ['**/.env']\n[limits]\nio = '10M/s'\nprocesses = 9\n";
    let export = export(&server(policy), &Settings::default(), &options()).unwrap();
    use crate::{Control, Intent};
    assert!(matches!(export.controls[&Control::Deny], Intent::Unavailable { .. }));
    assert!(matches!(export.controls[&Control::Io], Intent::Unavailable { .. }));
    assert!(matches!(export.controls[&Control::Processes], Intent::Partial { .. }));
    assert_eq!(export.controls.len(), Control::ALL.len());
    for (control, intent) in &export.controls {
        if let Intent::Unavailable { why, .. } = intent {
            assert!(!why.contains("is not known there"), "{control}");
        }
        assert!(export.files[0].text.contains(&format!("# {control}")), "{control}");
    }
}
