// The schema of a gateway.yaml.

import { flag, integer, list, oneOf, type Static, struct, text } from '../../api/schema.ts'

const reached = {
  kubeconfig: text('File with the way into it, relative to this file.'),
  context: text('Context of that kubeconfig; default its current one.'),
  inCluster: flag('Instead: the cluster that the gateway runs in, by its service account.'),
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
    cluster: text('One of clusters.'),
    namespace: text('The namespace there.'),
  },
  ['name', 'project', 'cluster', 'namespace'],
)

/** The settings of the embedded gateway. */
const targets = {
  apiVersion: oneOf(['config.platform.sh/v1'], 'Always this.'),
  kind: oneOf(['GatewayConfig'], 'Always this.'),
  identity: struct('Whom clusters see.', {
    userPrefix: text('Before every user name.'),
    groupPrefix: text('Before every group but system:authenticated.'),
  }),
  clusters: list(cluster, 'Connected clusters.'),
  virtualClusters: list(virtualCluster, 'Virtual clusters.'),
  spaces: list(space, 'Spaces.'),
  timeouts: struct('How long is waited for a cluster, and for a client, in seconds.', {
    connect: integer('For a connection.', { minimum: 1 }),
    answer: integer('For an answer to begin, of requests that are not streams.', { minimum: 1 }),
    take: integer('For a client to take a piece of such an answer. Default 60.', { minimum: 1 }),
  }),
}

const standalone = {
  listen: text('HOST:PORT to serve HTTPS on.'),
  tls: struct(
    'The certificate it is served with: from files, which are read again when they change, or of a CA of its own.',
    {
      certificate: text('PEM file.'),
      key: text('PEM file.'),
      directory: text('Instead: the directory of ca.crt and ca.key, which the gateway creates if they are missing.'),
      names: list(text(''), 'Names and addresses for the certificate of that CA; localhost is always among them.'),
    },
  ),
  issuer: struct(
    'Whose tokens count.',
    {
      url: text('As tokens name it: the base URL of the service.'),
      ca: text('PEM file with the one CA that is trusted for it.'),
      keySet: text('URL of its keys; default /.well-known/jwks.json below url.'),
    },
    ['url'],
  ),
  service: struct(
    'The connection to the management API, for revocations and access keys.',
    {
      url: text('Default: that of the issuer.'),
      ca: text('Default: that of the issuer.'),
      keyFile: text('File with an access key that has the scope role agent.'),
    },
    ['keyFile'],
  ),
  revocations: struct('Behaviour without contact to the revocation feed.', {
    serveWithout: integer('Seconds to continue; then the gateway refuses every token. Default 900.', { minimum: 120 }),
  }),
  limits: struct('Requests under way at once; one more is answered 429.', {
    reads: integer('Default 400.', { minimum: 1 }),
    writes: integer('Default 400.', { minimum: 1 }),
    streams: integer('Watches, logs, exec and the like. Default 10000.', { minimum: 1 }),
    share: integer('Percent of these that one identity may hold. Default 80.', { minimum: 1 }),
  }),
  status: text('HOST:PORT for health and metrics over plain HTTP, or off.'),
  audit: struct('The audit log.', {
    log: text('A file, - for stdout, or off. Default -.'),
    policy: text('File with an audit.k8s.io/v1 Policy. Default: writes, and reads of secrets.'),
    salt: text('File with the salt of hashes, made when missing; default one that lasts until the program ends.'),
  }),
  logLevel: oneOf(['debug', 'info', 'warn', 'error'], 'How much to log.'),
}

const needed = ['apiVersion', 'kind'] as const
export const embeddedSchema = struct('A gateway in the service.', targets, needed)
export const standaloneSchema = struct('A gateway of its own.', { ...targets, ...standalone }, [
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
