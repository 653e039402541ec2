// The schema of a gateway.yaml.

import { flag, integer, list, oneOf, type Static, struct, text } from '../../api/schema.ts'

const reached = {
  kubeconfig: text('Kubeconfig of the cluster. A relative path starts at the directory of this file.'),
  context: text('Context in the kubeconfig. Default: its current context.'),
  inCluster: flag(
    'Use the cluster that the gateway runs in, with the service account of its pod, instead of a kubeconfig.',
  ),
}

const cluster = struct('A connected cluster.', { name: text('The name in paths and scopes.'), ...reached }, ['name'])
const virtualCluster = struct(
  'A virtual cluster of a project.',
  { name: text('The name in paths and scopes.'), project: text('The project it belongs to.'), ...reached },
  ['name', 'project'],
)
const space = struct(
  'A space of a project: a namespace of a cluster.',
  {
    name: text('The name in paths and scopes.'),
    project: text('The project it belongs to.'),
    cluster: text('Name of an entry in clusters.'),
    namespace: text('Namespace in the cluster.'),
  },
  ['name', 'project', 'cluster', 'namespace'],
)

/** The settings of the embedded gateway. */
const targets = {
  apiVersion: oneOf(['config.platform.sh/v1'], 'API version of this file.'),
  kind: oneOf(['GatewayConfig'], 'Kind of this file.'),
  identity: struct('Users and groups that the gateway impersonates.', {
    userPrefix: text('Prefix of every user name.'),
    groupPrefix: text('Prefix of every group except system:authenticated.'),
  }),
  clusters: list(cluster, 'Connected clusters.'),
  virtualClusters: list(virtualCluster, 'Virtual clusters.'),
  spaces: list(space, 'Spaces.'),
  timeouts: struct('Timeouts in seconds.', {
    connect: integer('Time to connect to a cluster. Default 10.', { minimum: 1 }),
    answer: integer('Time until a cluster starts its response, except for streams. Default 75.', { minimum: 1 }),
    take: integer('Time for a client to read one chunk of a response, except for streams. Default 60.', { minimum: 1 }),
  }),
}

const standalone = {
  listen: text('Address for HTTPS, HOST:PORT.'),
  tls: struct(
    'Serving certificate: from files, which are reloaded when they change, or issued by the gateway’s own CA.',
    {
      certificate: text('PEM file with the certificate.'),
      key: text('PEM file with the private key.'),
      directory: text('Directory with ca.crt and ca.key of the gateway’s own CA, created if both are missing.'),
      names: list(text(''), 'Names and addresses in the certificate that this CA issues, in addition to localhost.'),
    },
  ),
  issuer: struct(
    'Issuer of valid tokens.',
    {
      url: text('Issuer as in the tokens: the base URL of the management API.'),
      ca: text('PEM file with the only CA that is trusted for the issuer.'),
      keySet: text('URL of the signing keys. Default: /.well-known/jwks.json below url.'),
    },
    ['url'],
  ),
  service: struct(
    'The connection to the management API, for revocations and access keys.',
    {
      url: text('URL of the management API. Default: url of the issuer.'),
      ca: text('PEM file with its CA. Default: ca of the issuer.'),
      keyFile: text('File with an access key that has the scope role agent.'),
    },
    ['keyFile'],
  ),
  agent: struct(
    'The agent of a cluster. It delivers secrets, and binds the cluster roles of teams.',
    {
      cluster: text('Name of an entry in clusters, and of the Cluster in the management API.'),
      namespace: text('Namespace in the cluster for the objects of the agent itself. Default platform-agent.'),
    },
    ['cluster'],
  ),
  revocations: struct('Behaviour without contact with the revocation feed.', {
    serveWithout: integer('Seconds to keep serving; then the gateway rejects every request. Default 900.', {
      minimum: 120,
    }),
  }),
  limits: struct('Maximum requests in flight; further requests get 429.', {
    reads: integer('Read requests. Default 400.', { minimum: 1 }),
    writes: integer('Write requests. Default 400.', { minimum: 1 }),
    streams: integer('Watches, logs, exec and the like. Default 10000.', { minimum: 1 }),
    share: integer('Percentage of each limit that one user can occupy. Default 80.', { minimum: 1 }),
  }),
  status: text('Address for health checks and metrics over plain HTTP, HOST:PORT, or off.'),
  audit: struct('The audit log.', {
    log: text('A file, - for stdout, or off. Default -.'),
    policy: text('File with an audit.k8s.io/v1 Policy. Default: writes, and reads of secrets.'),
    salt: text('File with the salt of hashes, created if missing. Default: a random salt until the gateway exits.'),
  }),
  logLevel: oneOf(['debug', 'info', 'warn', 'error'], 'Log level.'),
}

const needed = ['apiVersion', 'kind'] as const
export const embeddedSchema = struct('Configuration of the embedded gateway of platform serve.', targets, needed)
export const standaloneSchema = struct('Configuration of a standalone gateway.', { ...targets, ...standalone }, [
  ...needed,
  'listen',
  'tls',
  'issuer',
  'service',
])

export type GatewayConfig = Static<typeof standaloneSchema>
export type ReachedBy = {
  readonly kubeconfig?: string | undefined
  readonly context?: string | undefined
  readonly inCluster?: boolean | undefined
}
