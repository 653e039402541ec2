// A server in this process: registry, authentication and, if wanted, HTTP, with a clock that tests control.

import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AdmissionDependencies, admissionsFor } from '../../src/admission/admissions.ts'
import { digest } from '../../src/admission/digest.ts'
import { type GateDependencies, openGate } from '../../src/admission/gate.ts'
import type { Caller } from '../../src/api/caller.ts'
import { fieldPath, readAt, writeAt } from '../../src/api/field-path.ts'
import type { Kind, Question } from '../../src/api/kind.ts'
import type { JsonObject, Metadata, Ref, Resource } from '../../src/api/object.ts'
import type { Decision, PermissionVersions } from '../../src/api/permissions.ts'
import type { Resources } from '../../src/api/resources.ts'
import { tokenSealing } from '../../src/apiserver/encryption.ts'
import { openAccessKeyIndex } from '../../src/auth/authn/access-key-index.ts'
import type { Issuer } from '../../src/auth/tokens/issuer.ts'
import { connect } from '../../src/client/connect.ts'
import { startGarbageCollector } from '../../src/controllers/garbage-collector.ts'
import { openRoutes } from '../../src/http/non-resource-routes.ts'
import { requestHandler, type ServerOptions } from '../../src/http/server.ts'
import { OwnedAccessKey, kinds as ownKinds, SharedSecret } from '../../src/kinds/index.ts'
import { SecretVersion } from '../../src/kinds/secret-version.ts'
import { UsernameRecord, type UsernameSpec, usernameRef } from '../../src/kinds/username-record.ts'
import { openRegistry, type Registry } from '../../src/registry/registry.ts'
import { unpackData } from '../../src/registry/sealed-data.ts'
import { isNamespaceInUse, namespacesInUse } from '../../src/registry/virtual-kinds.ts'
import { openAudit } from '../../src/serving/audit.ts'
import { type InflightLimits, openInflightLimits } from '../../src/serving/inflight-limits.ts'
import { listenHttp } from '../../src/serving/listener.ts'
import { openMetrics } from '../../src/serving/metrics.ts'
import { openUnknownKeyLimiter } from '../../src/serving/unknown-key-limiter.ts'
import { openSealer, SealError } from '../../src/storage/encryption.ts'
import { openMemoryStore } from '../../src/storage/memory.ts'
import { openSqliteStore } from '../../src/storage/sqlite/store.ts'
import type { Store } from '../../src/storage/store.ts'
import { sampleAuditLog } from './sample-audit-log.ts'

export type BuildOptions = {
  readonly engine?: 'memory' | 'sqlite'
  /** In addition to the server's own kinds. */
  readonly kinds?: readonly Kind[]
  /** Instead of the server's own kinds. */
  readonly onlyKinds?: readonly Kind[]
  /** Decides about permissions; default: yes. */
  readonly authorize?: (caller: Caller, question: Question) => Decision
  readonly random?: (size: number) => Uint8Array
  readonly collect?: boolean
  /** The directory of an sqlite store that outlives the server; default: its own. */
  readonly directory?: string
  /** Maximum lifetime of a direct-cluster token in seconds. */
  readonly maxTokenTTL?: number
  /** Default: a clock that only the test moves. */
  readonly clock?: Clock
}

export type Clock = { now(): number; forward(seconds: number): void }

export type ApiServer = {
  readonly clock: Clock
  readonly store: Store
  /** With the permissions of the administrator. */
  readonly resources: Resources
  as: Registry['as']
  readonly reachVersion: Registry['reachVersion']
  readonly indexed: Registry['indexed']
  readonly internalClient: Resources
  readonly write: Registry['write']
  /** The stored object with encrypted fields decrypted, which no response shows. */
  opened(kind: Kind, ref: Ref): Resource
  /** The ids whose activity is no longer needed. */
  readonly unused: readonly string[]
  /** Resolves once the collector has processed everything it has seen. */
  settled(): Promise<void>
  close(): Promise<void>
}

/** Permissions never change. */
const unchanged: PermissionVersions = { current: () => 0, isAffected: () => false, step: () => {} }

/** Signs no valid tokens: tokens are tested with a whole server. */
const issuer: Issuer = {
  sign: async () => ({ token: 'signed', expires: 0 }),
  metadata: () => ({}),
  signedClaims: async () => undefined,
  keySet: () => ({ keys: [] }),
}

const admin: Caller = {
  identity: 'User',
  key: 'admin',
  username: 'admin',
  groups: ['system:authenticated', 'platform:user:admin'],
}

/** A history of one minute: moving the clock and writing compacts earlier revisions. */
export const historySeconds = 60

export async function buildApiServer(
  options: BuildOptions = {},
): Promise<ApiServer & { readonly kinds: readonly Kind[] }> {
  const kinds = options.onlyKinds ?? [...ownKinds, ...(options.kinds ?? [])]
  const clock = options.clock ?? movableClock()
  const { store, forget } = await openStore(options.engine ?? 'memory', clock, options.directory)
  const random = options.random ?? ((size: number) => randomBytes(size))
  const authorize = options.authorize ?? (() => ({ allowed: true, reason: '' }))
  const keys = [{ id: 'test', key: new Uint8Array(32).fill(7) }]
  const sealer = openSealer({ keys, random: size => randomBytes(size) })
  const unused: string[] = []
  const dependencies: AdmissionDependencies & GateDependencies = {
    now: clock.now,
    random,
    auditLog: sampleAuditLog(clock.now),
    ...tokenSealing(sealer),
    previewPatches: async () => ({ notes: [] }),
    clusters: () => [],
    clusterUid: () => undefined,
    clusterRolesOf: () => [],
    flowsTo: () => ({ secrets: [], roles: [] }),
    desiredItems: () => ({ version: '0', items: [] }),
    watchDesired: () => {
      throw new Error('no clusters here')
    },
    isNoWider: () => true,
    authorize,
    maxKeyTTL: undefined,
    verbCheck: (caller, target) => (verb, subresource) =>
      authorize(caller, { verb, target: subresource === undefined ? target : { ...target, subresource } }).allowed,
    startComparison: () => async () => ({ hasAll: true }),
    rulesFor: () => ({ resourceRules: [], nonResourceRules: [] }),
    rulesOfRole: () => undefined,
    boundTo: () => [],
    sharedWith: async () => [],
    explain: (caller, question) => ({ ...authorize(caller, question), steps: [], nearMisses: [], unknown: [] }),
    whoCan: () => [],
    permissionsOf: () => ({ members: [], permissions: [] }),
    callerNamed: user => ({ username: user, groups: [] }),
    explainToken: () => undefined,
    callerOf: ({ user, team }) => ({ username: user ?? `platform:team:${team}`, groups: [] }),
    teamUid: name => `uid-of-${name}`,
    teamsWithUsername: () => [],
    teamNamed: text => text,
    usernameHolder: () => undefined,
    isTeam: () => false,
    heldByUser: () => ({ bound: [], teams: [] }),
    sharedWithUser: async () => [],
    usernameRecord: username =>
      registry.peek(UsernameRecord, usernameRef(username, digest))?.spec as UsernameSpec | undefined,
    usernameOf: () => undefined,
    deletionsOf: username => {
      const { deletions } = (registry.peek(UsernameRecord, usernameRef(username, digest))?.spec ?? {}) as UsernameSpec
      return deletions ?? 0
    },
    issuerOf: () => undefined,
    secretUid: () => undefined,
    authenticateKey: async () => undefined,
    keyNamed: name => registry.peek(OwnedAccessKey, { namespace: '', name }),
    keyEnds: () => undefined,
    ownKeyEnds: () => undefined,
    newKeysEnd: () => undefined,
    loginOf: () => undefined,
    sessionOf: () => undefined,
    endOfKey: () => undefined,
    isDigestTaken: (_, wanted, { uid, holders }) =>
      [book.find(wanted)?.uid ?? uid, ...holders].some(one => one !== uid),
    touchKeys: uses => uses.length,
    maxTokenTTL: options.maxTokenTTL ?? 86_400,
    signToken: issuer.sign,
    generateKeyPair: () => ({ publicKey: { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' }, privateKey: '{}' }),
    createSigningKey: async () => 'signing-a',
    sharedSecretUid: ref => registry.peek(SharedSecret, ref)?.metadata.uid,
    lastActivity: () => undefined,
    openVersion: ref => registry.open(SecretVersion, ref),
    listVersions: async selection =>
      (await registry.internalClient.list(SecretVersion, selection)).items.map(({ object }) => object),
    namespacesInUse: () => namespacesInUse({ store, kinds }),
    isNamespaceInUse: namespace => isNamespaceInUse({ store, kinds }, namespace),
  }
  const registry: Registry = openRegistry({
    kinds,
    store,
    sealer,
    gate: openGate(dependencies),
    now: clock.now,
    uuid: randomUUID,
    lastActivity: () => undefined,
    random,
    admissions: admissionsFor(dependencies),
    authorize,
    permissionVersions: unchanged,
  })
  const book = openAccessKeyIndex({
    internalClient: registry.internalClient,
    changed: () => {},
    unused: id => void unused.push(id),
    failed: fail,
  })
  await book.ready
  const collector = options.collect
    ? startGarbageCollector({
        resources: registry.internalClient,
        kinds,
        now: clock.now,
        failed: (_, error) => fail(error),
      })
    : undefined
  await collector?.ready
  return {
    kinds,
    clock,
    store,
    resources: registry.as(admin),
    as: registry.as,
    reachVersion: registry.reachVersion,
    indexed: registry.indexed,
    internalClient: registry.internalClient,
    write: registry.write,
    unused,
    opened(kind, ref) {
      const entry = store.get({ bucket: kind.id, ...ref })
      let object = JSON.parse(entry?.text.toString() ?? 'null') as JsonObject
      const { namespace = '', name = '', uid = '' } = object['metadata'] as Metadata
      for (const path of kind.sealed) {
        const sealed = readAt(object, fieldPath(path))
        if (typeof sealed !== 'string') continue
        const value = unpackData(sealer.open({ kind: kind.id, namespace, name, uid, path }, sealed))
        object = writeAt(object, fieldPath(path), value)
      }
      return JSON.parse(JSON.stringify(object))
    },
    settled: async () => collector?.idle(),
    async close() {
      await collector?.stop()
      book.stop()
      await store.close()
      await forget()
    },
  }
}

/** Allows every request: other tests cover permissions. */
const openDoor = {
  authorize: () => ({ answer: 'yes', reason: '' }),
  decide: () => ({ allowed: true, reason: '' }),
} as unknown as ServerOptions['access']['authorizer']

export type Front = { readonly url: string; readonly limits: InflightLimits; close(): Promise<void> }

/** The real HTTP server for an in-process server, on loopback. Every request has the same caller. */
export async function openFront(
  apiServer: ApiServer & { readonly kinds: readonly Kind[] },
  caller: Caller = admin,
  port = 0,
): Promise<Front> {
  const ending = new AbortController()
  const metrics = openMetrics()
  const { now } = apiServer.clock
  const limits = openInflightLimits({ max: { read: 400, write: 400, watch: 400 }, share: 1, rate: 0, burst: 0, now })
  const guard = openUnknownKeyLimiter({ now })
  const sink = {
    write: () => true,
    failure: undefined,
    flush: async () => {},
    settled: async () => true,
    close: async () => {},
  }
  const policy = { rules: [{ level: 'None' as const }] }
  const audit = openAudit({ policy, sink, hash: () => '', now, sourcesOf: guard.sourcesOf, counted: () => {} })
  const checks = { livez: [], readyz: [] }
  const handle = requestHandler({
    kinds: apiServer.kinds,
    access: {
      authenticate: () => caller,
      prepare: () => undefined,
      authorizer: openDoor,
      teamNamed: text => text,
      issuer,
      guard,
      audit,
      permissionVersions: unchanged,
      isCurrent: () => true,
      permissionsChanged: () => () => {},
      warningFor: () => undefined,
    },
    resourcesFor: apiServer.as,
    confirm: () => undefined,
    reachVersion: apiServer.reachVersion,
    indexed: apiServer.indexed,
    noteRead: () => {},
    lastActivity: () => undefined,
    ...openRoutes({ kinds: apiServer.kinds, checks, metrics, now: apiServer.clock.now, version: 'test', issuer }),
    limits,
    fairness: () => undefined,
    refuseUnaudited: false,
    loopbackOnly: true,
    now,
    uuid: randomUUID,
    ending: ending.signal,
    observe: ({ error, code }) => {
      if (code === 500 && !(error instanceof SealError)) fail(error)
    },
  })
  const listener = await listenHttp({ host: '127.0.0.1', port }, (request, response) => void handle(request, response))
  return {
    url: listener.url,
    limits,
    async close() {
      ending.abort()
      await listener.close(0)
    },
  }
}

/** The same server through the client and HTTP. */
export async function openRemoteApiServer(
  options: BuildOptions = {},
): Promise<ApiServer & { readonly kinds: readonly Kind[] }> {
  const apiServer = await buildApiServer(options)
  const front = await openFront(apiServer)
  return {
    ...apiServer,
    resources: connect({ url: front.url, key: 'any', fetch: (url, init) => fetch(url, init) }),
    async close() {
      await front.close()
      await apiServer.close()
    },
  }
}

function movableClock(): Clock {
  // Whole seconds, so that times an object shows are the times a test computes.
  let time = Date.UTC(2026, 0, 2, 3, 4, 5)
  return {
    now: () => time,
    forward(seconds) {
      time += seconds * 1000
    },
  }
}

async function openStore(engine: 'memory' | 'sqlite', { now }: Clock, kept?: string) {
  const history = { minAgeMs: historySeconds * 1000, minEvents: 0 }
  if (engine === 'memory') return { store: openMemoryStore({ now, history }), forget: async () => {} }
  const directory = kept ?? (await mkdtemp(join(tmpdir(), 'platform-test-')))
  const store = await openSqliteStore({ file: join(directory, 'platform.db'), now, history })
  return { store, forget: async () => kept ?? rm(directory, { recursive: true, force: true }) }
}

/** A failure in the background fails the test run. */
function fail(error: unknown): void {
  console.error('background failure:', error)
}
