// Brings along what patches refer to: a ConfigMap or Secret of the tenant goes to the host, one that is only on the host
// comes to the tenant, if it may. endpoints.ts calls it for every reference of an object that it has synced (SPEC §2.10).

import { canonical } from '../../api/codec.ts'
import type { Kind } from '../../api/kind.ts'
import type { Json, JsonObject, OwnerReference, Ref, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { defaultKeyPolicy, type KeyPolicy } from '../config/metadata-keys.ts'
import { importRefusal, neverTypes } from '../patch/import-policy.ts'
import type { Referent } from '../patch/reference.ts'
import { isNotFound } from './api-errors.ts'
import { TroubleError } from './condition.ts'
import { ConfigMap, Secret } from './kinds.ts'
import { ownershipOf } from './ownership.ts'
import { importedMark, marksOf } from './sync-annotations.ts'
import { hostAnnotations, hostLabels, type Vcluster } from './translate.ts'

export type ReferentsOptions = {
  readonly virtual: Resources
  readonly host: Resources
  readonly vcluster: Vcluster
  readonly owner: OwnerReference | undefined
  /** Whether objects of the tenant go to the host. */
  readonly pushes: { readonly ConfigMap: boolean; readonly Secret: boolean }
  /** Secrets that may come from the host: `Secret`, or `Secret/` and the name there. */
  readonly importAllow: readonly string[]
  /** Which labels and annotations cross; default: those that no well-known controller acts on. */
  readonly crosses?: KeyPolicy | undefined
}

type Held = Resource & {
  readonly data?: JsonObject
  readonly binaryData?: JsonObject
  readonly type?: string
  readonly immutable?: boolean
}

const kinds: { readonly [name: string]: Kind } = { 'v1/ConfigMap': ConfigMap, 'v1/Secret': Secret }
const manager = { fieldManager: 'platform-vcluster-sync' }

/** Kinds that it does not know are left alone: their names are translated, and somebody else brings them. */
export function openReferents(options: ReferentsOptions): (referent: Referent) => Promise<void> {
  const { virtual, host, vcluster } = options
  return async referent => {
    const kind = kinds[`${referent.apiVersion}/${referent.kind}`]
    if (!kind) return
    const ref = { namespace: referent.namespace, name: referent.name }
    const hostRef = { namespace: referent.hostNamespace, name: referent.hostName }
    const [here, there] = await Promise.all([read(virtual, kind, ref), read(host, kind, hostRef)])
    const owner = there && ownershipOf(there.metadata, { vcluster, ref, kind: kind.kind, uid: here?.metadata.uid })
    if (here && here.metadata.annotations?.[importedMark] === undefined) {
      if (!options.pushes[kind.kind as 'Secret']) return
      if (typeof owner === 'object') throw foreign(kind, { ref, hostRef }, owner.why)
      const refused = pushRefusal(here)
      if (refused) throw trouble(`the ${kind.kind} ${ref.namespace}/${ref.name} does not go to the host: ${refused}`)
      return push({ kind, here, there, hostRef }, options)
    }
    if (!there) return
    // Made by us, and what it was made from is gone.
    if (owner === 'ours' && !here) return drop(host, kind, hostRef, there)
    const question = { referent, hostObject: there as unknown as JsonObject, virtualExists: false, vcluster }
    const why = importRefusal({ ...question, allow: options.importAllow })
    if (why) throw notImported(kind, { ref, hostRef }, why)
    return pull({ kind, here, there, ref, hostRef }, options)
  }
}

/** The host would fill such a Secret with a token of one of its service accounts, for the tenant to read. */
function pushRefusal({ type = '', metadata: { annotations = {} } }: Held): string | undefined {
  if (neverTypes.test(type)) return `Secrets of type ${type} are the host's own`
  const mark = Object.keys(annotations).find(key => key.startsWith('kubernetes.io/service-account.'))
  return mark && `its annotation ${mark} means something to the host`
}

async function drop(host: Resources, kind: Kind, ref: Ref, { metadata }: Held): Promise<void> {
  const { uid = '', resourceVersion = '' } = metadata
  await host.delete(kind, ref, { preconditions: { uid, resourceVersion } })
}

async function read(resources: Resources, kind: Kind, ref: Ref): Promise<Held | undefined> {
  try {
    return (await resources.get(kind, ref)).object as Held
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

type Place = { readonly ref: Ref; readonly hostRef: Ref }

const said = ({ kind }: Kind, { namespace, name }: Ref) => `the ${kind} ${namespace}/${name}`
const trouble = (message: string, logged = message) => new TroubleError({ reason: 'ReferenceFailed', message, logged })
const foreign = (kind: Kind, { ref, hostRef }: Place, why: string) =>
  trouble(
    `${said(kind, ref)} does not go to the host: the object in its place was not created by this syncer`,
    `${said(kind, hostRef)} on the host was not created by this syncer: ${why}`,
  )
/** Behind a colon are names of the host. */
const notImported = (kind: Kind, { ref, hostRef }: Place, why: string) =>
  trouble(
    `${said(kind, ref)} is not imported from the host: ${why.split(':')[0]}`,
    `${said(kind, hostRef)} of the host is not imported: ${why}`,
  )

const contentOf = ({ data, binaryData, type, immutable }: Held) => ({
  ...(data ? { data } : {}),
  ...(binaryData ? { binaryData } : {}),
  ...(type ? { type } : {}),
  ...(immutable === undefined ? {} : { immutable }),
})
const same = (a: unknown, b: unknown) => canonical(a as Json) === canonical(b as Json)

type Pushed = { readonly kind: Kind; readonly here: Held; readonly there: Held | undefined; readonly hostRef: Ref }

async function push(
  { kind, here, there, hostRef }: Pushed,
  { host, vcluster, owner, crosses = defaultKeyPolicy }: ReferentsOptions,
): Promise<void> {
  const marks = marksOf(here, hostRef, vcluster)
  const metadata = {
    ...hostRef,
    labels: { ...hostLabels(here.metadata.labels, vcluster, crosses), ...marks.labels },
    annotations: { ...hostAnnotations(here.metadata.annotations, crosses), ...marks.annotations },
    ...(owner && hostRef.namespace === vcluster.namespace ? { ownerReferences: [owner] } : {}),
  }
  const wanted = { apiVersion: kind.apiVersion, kind: kind.kind, metadata, ...contentOf(here) } as unknown as JsonObject
  if (!there) return void (await host.create(kind, hostRef.namespace, wanted, manager))
  const isSame =
    same(contentOf(there), contentOf(here)) &&
    same(there.metadata.labels ?? {}, metadata.labels) &&
    same(there.metadata.annotations ?? {}, metadata.annotations)
  if (isSame) return
  const { resourceVersion = '' } = there.metadata
  await host.update(
    kind,
    hostRef,
    { ...wanted, metadata: { ...metadata, resourceVersion } as unknown as JsonObject },
    manager,
  )
}

type Pulled = {
  readonly kind: Kind
  readonly here: Held | undefined
  readonly there: Held
  readonly ref: Ref
  readonly hostRef: Ref
}

async function pull({ kind, here, there, ref, hostRef }: Pulled, { virtual }: ReferentsOptions): Promise<void> {
  const content = contentOf(there)
  if (!here) {
    const metadata = { ...ref, annotations: { [importedMark]: `${hostRef.namespace}/${hostRef.name}` } }
    const object = { apiVersion: kind.apiVersion, kind: kind.kind, metadata, ...content }
    return void (await virtual.create(kind, ref.namespace, object as unknown as Json, manager))
  }
  if (same(contentOf(here), content)) return
  const { data: _, binaryData: __, ...rest } = here
  await virtual.update(kind, ref, { ...rest, ...content } as unknown as Json, manager)
}
