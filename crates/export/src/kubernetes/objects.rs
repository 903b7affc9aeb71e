//! The objects of Kubernetes that an export has, field by field as the API spells them.

use std::collections::BTreeMap;

use serde::Serialize;

pub type Labels = BTreeMap<String, String>;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Object<S> {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub metadata: Metadata,
    pub spec: S,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMap {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub metadata: Metadata,
    pub data: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub annotations: Labels,
    pub labels: Labels,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentSpec {
    pub replicas: u32,
    pub selector: Selector,
    pub strategy: Strategy,
    pub progress_deadline_seconds: u32,
    pub template: PodTemplate,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Strategy {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub rolling_update: RollingUpdate,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    pub max_surge: u32,
    pub max_unavailable: u32,
}

/// `agents.x-k8s.io/v1beta1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxSpec {
    pub operating_mode: &'static str,
    pub service: bool,
    pub shutdown_policy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_time: Option<String>,
    pub pod_template: PodTemplate,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PodTemplate {
    pub metadata: Metadata,
    pub spec: PodSpec,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Selector {
    pub match_labels: Labels,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<u64>,
    pub automount_service_account_token: bool,
    pub containers: Vec<Container>,
    pub enable_service_links: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_users: Option<bool>,
    pub restart_policy: &'static str,
    pub security_context: PodSecurity,
    pub termination_grace_period_seconds: u64,
    pub volumes: Vec<Volume>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSecurity {
    pub fs_group: u32,
    pub run_as_group: u32,
    pub run_as_non_root: bool,
    pub run_as_user: u32,
    pub seccomp_profile: Seccomp,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seccomp {
    #[serde(rename = "type")]
    pub kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    pub name: &'static str,
    pub image: String,
    pub image_pull_policy: &'static str,
    pub command: Vec<String>,
    pub env: Vec<Variable>,
    pub liveness_probe: Probe,
    pub ports: Vec<ContainerPort>,
    pub readiness_probe: Probe,
    pub resources: Resources,
    pub security_context: Security,
    pub volume_mounts: Vec<Mount>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Variable {
    pub name: &'static str,
    pub value: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerPort {
    pub name: &'static str,
    pub container_port: u16,
    #[serde(rename = "hostIP", skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_port: Option<u16>,
    pub protocol: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    pub http_get: HttpGet,
    pub period_seconds: u32,
    pub timeout_seconds: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HttpGet {
    pub path: &'static str,
    pub port: u16,
    pub scheme: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resources {
    pub limits: Labels,
    pub requests: Labels,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Security {
    pub allow_privilege_escalation: bool,
    pub capabilities: Capabilities,
    pub privileged: bool,
    pub read_only_root_filesystem: bool,
    pub run_as_non_root: bool,
    pub seccomp_profile: Seccomp,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capabilities {
    pub drop: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    pub name: String,
    pub mount_path: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Volume {
    pub name: String,
    #[serde(flatten)]
    pub source: Source,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    #[serde(rename_all = "camelCase")]
    ConfigMap { name: String, optional: bool },
    #[serde(rename_all = "camelCase")]
    EmptyDir {
        #[serde(skip_serializing_if = "Option::is_none")]
        medium: Option<&'static str>,
        size_limit: String,
    },
    #[serde(rename_all = "camelCase")]
    HostPath {
        path: String,
        #[serde(rename = "type")]
        kind: &'static str,
    },
    #[serde(rename_all = "camelCase")]
    PersistentVolumeClaim { claim_name: String },
    #[serde(rename_all = "camelCase")]
    Secret { default_mode: u32, optional: bool, secret_name: String },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSpec {
    pub ports: Vec<ServicePort>,
    pub selector: Labels,
    pub session_affinity: &'static str,
    #[serde(rename = "type")]
    pub kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    pub name: &'static str,
    pub port: u16,
    pub protocol: &'static str,
    pub target_port: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicySpec {
    pub egress: Vec<EgressRule>,
    pub ingress: Vec<IngressRule>,
    pub pod_selector: Selector,
    pub policy_types: [&'static str; 2],
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IngressRule {
    pub from: Vec<Peer>,
    pub ports: Vec<PolicyPort>,
}

/// Without peers and ports it means everything, so neither list is ever left out by accident: see `network_policy`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EgressRule {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<Peer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PolicyPort>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Peer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_block: Option<IpBlock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<Selector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<Selector>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IpBlock {
    pub cidr: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyPort {
    pub port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_port: Option<u16>,
    pub protocol: &'static str,
}
