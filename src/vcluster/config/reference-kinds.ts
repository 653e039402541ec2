// Decides which kinds of referenced objects the syncer may copy between the virtual cluster and the host.

/** A kind as kubectl names it: `PersistentVolumeClaim`, `Ingress.networking.k8s.io` or `Ingress.v1.networking.k8s.io`. */
export type KindName = { readonly group: string; readonly version?: string; readonly kind: string }

export type GroupKind = Pick<KindName, 'group' | 'kind'>

export function groupKindOf({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): GroupKind {
  const slash = apiVersion.indexOf('/')
  return { group: slash < 0 ? '' : apiVersion.slice(0, slash), kind }
}

export const showKind = ({ group, kind }: GroupKind): string => (group ? `${kind}.${group}` : kind)

const version = /^v\d+((alpha|beta)\d+)?$/

/** Returns undefined if the text does not name a kind. */
export function parseKind(text: string): KindName | undefined {
  const [kind = '', ...rest] = text.split('.')
  const isValid = /^[A-Z][A-Za-z0-9]*$/.test(kind) && rest.every(part => /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(part))
  if (!isValid) return undefined
  const [first = '', ...group] = rest
  return version.test(first) ? { group: group.join('.'), version: first, kind } : { group: rest.join('.'), kind }
}

/** The virtual cluster syncs these itself, so their host names are known. */
const clusterSynced = ['Endpoints', 'Pod', 'Service']
export const isSyncedByCluster = ({ group, kind }: GroupKind): boolean => group === '' && clusterSynced.includes(kind)

const isOneOf =
  (...kinds: string[]) =>
  ({ kind }: GroupKind) =>
    kinds.includes(kind)
const any = () => true
const credentials = 'they are credentials of the host'
const workloads = 'they run programs on the host'
const permissions = 'they grant permissions on the host'
const extensions = 'they change the API of the host'
const clusterScoped = 'they are not in a namespace'
/** With `kindPath` the tenant chooses the kind, so no setting allows these. */
const neverCrossing: { readonly [group: string]: readonly (readonly [(one: GroupKind) => boolean, string])[] } = {
  '': [
    [isOneOf('Pod', 'PodTemplate', 'ReplicationController', 'Binding'), workloads],
    [isOneOf('ServiceAccount', 'TokenRequest'), credentials],
    [isOneOf('Node', 'Namespace', 'PersistentVolume', 'ComponentStatus'), clusterScoped],
    [isOneOf('Service', 'Endpoints'), 'other parts of the virtual cluster sync them'],
  ],
  apps: [[any, workloads]],
  batch: [[any, workloads]],
  extensions: [[isOneOf('Deployment', 'DaemonSet', 'ReplicaSet'), workloads]],
  'discovery.k8s.io': [[any, 'the host creates them from Endpoints, whose addresses the syncer checks']],
  'rbac.authorization.k8s.io': [[any, permissions]],
  'authorization.k8s.io': [[any, permissions]],
  'authentication.k8s.io': [[any, credentials]],
  'certificates.k8s.io': [[any, credentials]],
  'admissionregistration.k8s.io': [[any, 'they change or reject requests on the host']],
  'apiextensions.k8s.io': [[any, extensions]],
  'apiregistration.k8s.io': [[any, extensions]],
}

/** Returns why objects of this kind are never copied, such as "they grant permissions on the host". */
export function neverCrosses(one: GroupKind): string | undefined {
  const rows = Object.hasOwn(neverCrossing, one.group) ? neverCrossing[one.group] : undefined
  return rows?.find(([matches]) => matches(one))?.[1]
}

type ToHost = { readonly [key in 'configMaps' | 'secrets']: { readonly enabled: boolean } }

const switches: { readonly [kind: string]: keyof ToHost } = { ConfigMap: 'configMaps', Secret: 'secrets' }

/**
 * Returns a warning if references to this kind have no object on the host with this configuration. `flagged` are the
 * kinds of --sync-references.
 */
export function kindWarning(one: GroupKind, toHost: ToHost, flagged: readonly GroupKind[] = []): string | undefined {
  const shown = showKind(one)
  const only = 'the patch only translates the name'
  if (isSyncedByCluster(one)) return undefined
  const never = neverCrosses(one)
  if (never) return `${shown} objects are never synced to the host, because ${never}; ${only}`
  const key = one.group === '' && Object.hasOwn(switches, one.kind) ? switches[one.kind] : undefined
  if (flagged.some(({ group, kind }) => group === one.group && kind === one.kind)) return undefined
  if (!key) return `${shown} objects are synced to the host only with --sync-references ${shown}; otherwise ${only}`
  if (toHost[key].enabled) return undefined
  return `${shown} objects are not synced to the host, because sync.toHost.${key}.enabled is false; ${only}`
}

/** Returns why an entry of --sync-references is refused. */
export function syncReferencesProblem(text: string): string | undefined {
  const [problem] = syncedKindProblems(text)
  return problem && `--sync-references: ${JSON.stringify(text.slice(0, 80))} ${problem}`
}

/** The same without the name of the flag and its value. */
export function syncedKindProblems(text: string): readonly string[] {
  const kind = parseKind(text)
  if (!kind) return ['must be a kind such as PersistentVolumeClaim or Ingress.networking.k8s.io']
  const key = kind.group === '' && Object.hasOwn(switches, kind.kind) ? switches[kind.kind] : undefined
  if (key) return [`is synced by default; see sync.toHost.${key}.enabled in the vcluster.yaml`]
  const never = neverCrosses(kind)
  return never ? [`objects never cross to the host: ${never}`] : []
}
