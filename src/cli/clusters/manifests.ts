// Builds the Kubernetes manifests of an agent, with exactly the permissions that it needs (D68, D69). Pure.

import { writeYaml } from '../../api/encode.ts'
import type { Json, JsonObject } from '../../api/object.ts'

export type ManifestOptions = {
  readonly cluster: string
  /** Namespace of the agent. */
  readonly namespace: string
  readonly image: string
  /** The cluster's roles that the agent may bind. */
  readonly bindableRoles: readonly string[]
  /** Namespaces that secrets may be delivered to. */
  readonly secretNamespaces: readonly string[]
  /** The management API: its issuer, its URL for the agent, and its CA. */
  readonly issuer: string
  readonly server: string
  readonly ca: string | undefined
  /** The key of the agent; absent: the Secret in the cluster stays as it is. */
  readonly key: string | undefined
  /** The agent signs in with a token of its service account instead of a key. */
  readonly usesServiceAccount: boolean
  readonly gatewayUrl: string | undefined
  /** Secret of type kubernetes.io/tls in the agent's namespace; absent: the gateway's own CA issues the certificate. */
  readonly tlsSecret: string | undefined
}

export const clusterLabel = 'platform.sh/cluster'
/** On every object that the agent creates: the uid of the Cluster. */
export const clusterUidLabel = 'platform.sh/cluster-uid'

export const agentName = 'platform-agent'
export const keySecretName = 'platform-agent-key'
/** Cluster-wide names contain the name of the cluster, because a cluster can be connected under two names. */
export const wideName = (cluster: string) => `${agentName}-${cluster}`
/** On every object of the manifests. */
export const labelsOf = (cluster: string) => ({ [clusterLabel]: cluster, 'app.kubernetes.io/name': agentName })

const rbac = 'rbac.authorization.k8s.io'
const ports = { https: 8443, status: 8081 }
const write = ['get', 'list', 'watch', 'create', 'update', 'delete']

export function manifestsOf(options: ManifestOptions): JsonObject[] {
  const { cluster, namespace, key } = options
  const [labels, wide] = [labelsOf(cluster), wideName(cluster)]
  const subjects = [{ kind: 'ServiceAccount', name: agentName, namespace }]
  const object = (apiVersion: string, kind: string, metadata: JsonObject, rest: JsonObject): JsonObject => ({
    apiVersion,
    kind,
    metadata: { ...metadata, labels },
    ...rest,
  })
  const own = (apiVersion: string, kind: string, name: string, rest: JsonObject) =>
    object(apiVersion, kind, { name, namespace }, rest)
  const role = (at: string, name: string, rules: Json) => [
    object(`${rbac}/v1`, 'Role', { name, namespace: at }, { rules }),
    object(`${rbac}/v1`, 'RoleBinding', { name, namespace: at }, { roleRef: refTo('Role', name), subjects }),
  ]
  return [
    object('v1', 'Namespace', { name: namespace }, {}),
    own('v1', 'ServiceAccount', agentName, {}),
    object(`${rbac}/v1`, 'ClusterRole', { name: wide }, { rules: clusterRules(options) }),
    object(`${rbac}/v1`, 'ClusterRoleBinding', { name: wide }, { roleRef: refTo('ClusterRole', wide), subjects }),
    ...role(namespace, wide, [
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] },
      { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'update'] },
    ]),
    ...options.secretNamespaces.flatMap(at =>
      role(at, wide, [{ apiGroups: [''], resources: ['secrets'], verbs: write }]),
    ),
    ...(key === undefined
      ? []
      : [own('v1', 'Secret', keySecretName, { type: 'Opaque', data: { key: Buffer.from(key).toString('base64') } })]),
    own('v1', 'ConfigMap', agentName, { data: configOf(options) }),
    ...(options.gatewayUrl === undefined ? [] : [own('v1', 'Service', agentName, { spec: serviceOf(cluster) })]),
    own('apps/v1', 'Deployment', agentName, { spec: deploymentOf(options, labels) }),
  ]
}

const refTo = (kind: string, name: string) => ({ apiGroup: rbac, kind, name })

const impersonation = [
  { apiGroups: [''], resources: ['users', 'groups'], verbs: ['impersonate'] },
  {
    apiGroups: ['authentication.k8s.io'],
    resources: ['userextras/authentication.platform.sh/key', 'userextras/authentication.platform.sh/token'],
    verbs: ['impersonate'],
  },
]

const serviceOf = (cluster: string) => ({
  selector: labelsOf(cluster),
  ports: [{ name: 'https', port: 443, targetPort: ports.https }],
})

/** Only a gateway for users impersonates them. */
function clusterRules({ bindableRoles, gatewayUrl }: ManifestOptions): Json {
  const bind = {
    apiGroups: [rbac],
    resources: ['clusterroles'],
    resourceNames: [...bindableRoles],
    verbs: ['get', 'bind'],
  }
  return [
    { apiGroups: [rbac], resources: ['clusterrolebindings'], verbs: write },
    // An empty list of names would mean every role.
    ...(bindableRoles.length ? [bind] : []),
    ...(gatewayUrl === undefined ? [] : impersonation),
    { apiGroups: ['authorization.k8s.io'], resources: ['selfsubjectaccessreviews'], verbs: ['create'] },
  ]
}

const directories = { config: '/etc/platform', key: '/etc/platform-key', tls: '/var/lib/platform/tls' }

function configOf({ cluster, namespace, issuer, server, ca, gatewayUrl, tlsSecret }: ManifestOptions): JsonObject {
  const names = [
    ...(gatewayUrl ? [new URL(gatewayUrl).hostname.replace(/^\[|\]$/g, '')] : []),
    `${agentName}.${namespace}.svc`,
  ]
  const config = {
    apiVersion: 'config.platform.sh/v1',
    kind: 'GatewayConfig',
    listen: `0.0.0.0:${ports.https}`,
    status: `0.0.0.0:${ports.status}`,
    tls: tlsSecret
      ? { certificate: `${directories.tls}/tls.crt`, key: `${directories.tls}/tls.key` }
      : { directory: directories.tls, names },
    issuer: { url: issuer, ...(ca ? { ca: `${directories.config}/ca.crt` } : {}) },
    service: { ...(server === issuer ? {} : { url: server }), keyFile: `${directories.key}/key` },
    clusters: [{ name: cluster, inCluster: true }],
    agent: { cluster, namespace },
  }
  return { 'gateway.yaml': writeYaml(config), ...(ca ? { 'ca.crt': ca } : {}) }
}

/** The kubelet replaces it in time. */
const tokenFor = (audience: string) => ({ audience, expirationSeconds: 3600, path: 'key' })

function deploymentOf(
  { cluster, image, tlsSecret, issuer, usesServiceAccount }: ManifestOptions,
  labels: JsonObject,
): JsonObject {
  const container = {
    name: 'agent',
    image,
    args: ['gateway', '--config', `${directories.config}/gateway.yaml`],
    ports: [{ name: 'https', containerPort: ports.https }],
    readinessProbe: { httpGet: { path: '/readyz', port: ports.status } },
    livenessProbe: { httpGet: { path: '/livez', port: ports.status } },
    resources: { requests: { cpu: '50m', memory: '160Mi' }, limits: { memory: '512Mi' } },
    securityContext: {
      runAsNonRoot: true,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    },
    volumeMounts: [
      { name: 'config', mountPath: directories.config, readOnly: true },
      { name: 'key', mountPath: directories.key, readOnly: true },
      { name: 'tls', mountPath: directories.tls, ...(tlsSecret ? { readOnly: true } : {}) },
    ],
  }
  return {
    replicas: 1,
    selector: { matchLabels: labelsOf(cluster) },
    template: {
      metadata: { labels },
      spec: {
        serviceAccountName: agentName,
        containers: [container],
        volumes: [
          { name: 'config', configMap: { name: agentName } },
          usesServiceAccount
            ? { name: 'key', projected: { sources: [{ serviceAccountToken: tokenFor(issuer) }] } }
            : { name: 'key', secret: { secretName: keySecretName } },
          tlsSecret ? { name: 'tls', secret: { secretName: tlsSecret } } : { name: 'tls', emptyDir: {} },
        ],
      },
    },
  }
}
