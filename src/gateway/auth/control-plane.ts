// The client of a standalone gateway for the management API: signing keys, revocations, reviews of access keys, usage reports.

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Caller, Scope } from '../../api/caller.ts'
import { ApiError, unauthorized, unavailable } from '../../api/errors.ts'
import { type Json, type JsonObject, timestamp } from '../../api/object.ts'
import { pathOf, prefix } from '../../api/paths.ts'
import type { Resources, Watch } from '../../api/resources.ts'
import { keySetPath, metadataPath } from '../../auth/tokens/issuer.ts'
import { connect } from '../../client/connect.ts'
import { errorOf } from '../../client/response-error.ts'
import { readWatch } from '../../client/watch-reader.ts'
import { fileProblem } from '../../host/fs-errors.ts'
import { AccessKeyActivity } from '../../kinds/access-key-activity.ts'
import { Cluster } from '../../kinds/cluster.ts'
import { isKnownScope } from '../../kinds/known-scope.ts'
import { TokenReview } from '../../kinds/subject-reviews.ts'
import { openTransport, type Transport } from '../../transport/transport.ts'
import type { GatewayConfig } from '../config/schema.ts'
import type { Review } from './token-review-cache.ts'
import type { UsageReporterOptions } from './usage-reporter.ts'

export type Service = {
  readonly url: string
  readonly resources: Resources
  readonly fetchKeys: () => Promise<Json>
  /** The issuer's OpenID metadata. */
  readonly fetchMetadata: () => Promise<Json>
  readonly review: Review
  /** A review of the gateway's own key. Rejects with the error of the management API. */
  readonly reviewSelf: () => ReturnType<Review>
  readonly report: UsageReporterOptions['send']
  /** Opens the stream of clusters/<name>/desired. It always begins with the whole state. */
  readonly watchDesired: (cluster: string, signal: AbortSignal) => Promise<Watch>
  /** Adds the file of the gateway's own key to an error about that key. */
  readonly ofOwnKey: (error: unknown) => unknown
  close(): void
}

type Environment = { readonly env: { readonly [name: string]: string | undefined }; readonly now: () => number }

const wholeState = 'watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
const maxKeySetBytes = 256 * 1024
type FetchOptions = { readonly keyFile?: string | undefined; readonly maxBytes?: number }

const pathsOf = ({ issuer = {}, service = {} }: GatewayConfig, file: string) => {
  const at = (path: string | undefined) => (path ? resolve(dirname(file), path) : undefined)
  return { issuerCa: at(issuer.ca), serviceCa: at(service.ca ?? issuer.ca), keyFile: at(service.keyFile) }
}

/** Problems with the configured files. */
export function checkServiceFiles(config: GatewayConfig, file: string): string[] {
  const { issuerCa, serviceCa, keyFile } = pathsOf(config, file)
  return [
    ...checkFile(issuerCa, `${file}: issuer.ca`, noCertificate),
    ...(config.service?.ca ? checkFile(serviceCa, `${file}: service.ca`, noCertificate) : []),
    ...checkFile(keyFile, `${file}: service.keyFile`, noKey),
  ]
}

/** The certificates of the configured CAs. */
export function trustedIn(config: GatewayConfig, file: string) {
  const { issuerCa, serviceCa } = pathsOf(config, file)
  const read = (path: string | undefined) => (path ? readFileSync(path, 'utf8') : undefined)
  return { issuer: read(issuerCa), service: read(serviceCa) }
}

/** The files were checked before. CA files are read once, so that the gateway never trusts an unchecked one. */
export function openService(config: GatewayConfig, file: string, environment: Environment): Service {
  const { issuer = {}, service = {} } = config
  const { keyFile } = pathsOf(config, file)
  const trusted = trustedIn(config, file)
  const caOfService = service.ca ? 'service.ca' : 'issuer.ca'
  const open = (server: string, ca: string | undefined, caIs: string, { keyFile, maxBytes }: FetchOptions) =>
    openTransport(
      {
        server,
        namespace: '',
        insecure: false,
        ...(ca ? { ca: { text: ca } } : {}),
        ...(keyFile ? { tokenFile: keyFile } : {}),
      },
      // The management API sends a bookmark every minute, so a watch without data for two minutes is broken.
      { ...environment, answerWithin: 10_000, quietFor: 130_000, caIs, ...(maxBytes ? { maxBytes } : {}) },
    )
  const url = service.url ?? issuer.url ?? ''
  const own = open(url, trusted.service, caOfService, { keyFile })
  const keys = open(issuer.url ?? '', trusted.issuer, 'issuer.ca', { maxBytes: maxKeySetBytes })
  const resources = connect({ url, fetch: own.fetch })
  return {
    url,
    resources,
    fetchKeys: () => fetchJson(keys, issuer.keySet ?? `${issuer.url}${keySetPath}`, 'key set'),
    fetchMetadata: () => fetchJson(keys, `${issuer.url}${metadataPath}`, 'metadata'),
    review: async key => reviewed(await create(resources, key)),
    reviewSelf: async () => {
      const token = readFileSync(keyFile ?? '', 'utf8').trim()
      const { object } = await resources.create(TokenReview, '', { spec: { token } })
      return reviewed((object.status ?? {}) as JsonObject)
    },
    report: async uses => {
      const spec = { keys: uses.map(({ uid, time }) => ({ uid, lastActivity: timestamp(time) })) }
      await resources.create(AccessKeyActivity, '', { spec })
    },
    async watchDesired(cluster, signal) {
      const ending = new AbortController()
      const path = pathOf(Cluster, { name: cluster, subresource: 'desired' })
      const response = await own.fetch(`${url}${prefix}${path}?${wholeState}`, {
        headers: { Accept: 'application/json' },
        signal: AbortSignal.any([signal, ending.signal]),
      })
      if (!response.ok) throw await errorOf(response)
      return readWatch(response.body, { kind: Cluster, from: '', abort: () => ending.abort() })
    },
    ofOwnKey(error) {
      if (!isUnauthorized(error)) return error
      return new Error(`the management API rejected the access key in ${keyFile} (service.keyFile): ${error.message}`)
    },
    close() {
      own.close()
      keys.close()
    },
  }
}

type CheckContent = (text: string) => string | undefined

function checkFile(path: string | undefined, where: string, look: CheckContent): string[] {
  if (!path) return []
  try {
    const wrong = look(readFileSync(path, 'utf8'))
    return wrong ? [`${where}: ${path} ${wrong}`] : []
  } catch (error) {
    return [`${where}: ${fileProblem(path, error)}`]
  }
}

const noKey: CheckContent = text => {
  if (text.trim() === '') return 'is empty: it must contain an access key'
  return /^\S+$/.test(text.trim()) ? undefined : 'must contain exactly one access key'
}

const noCertificate: CheckContent = text => {
  try {
    void new X509Certificate(text)
    return undefined
  } catch {
    return 'does not contain a PEM certificate'
  }
}

/** Rejects with an ApiError if the issuer returns anything else. */
async function fetchJson({ fetch }: Pick<Transport, 'fetch'>, url: string, what: string): Promise<Json> {
  const response = await fetch(url, {})
  if (!response.ok)
    throw new ApiError(response.status, 'Issuer', `the issuer returned ${response.status} for its ${what} (${url})`)
  const text = await response.text()
  try {
    return JSON.parse(text) as Json
  } catch {
    throw new ApiError(422, 'Issuer', `the issuer did not return JSON for its ${what} (${url})`)
  }
}

const isUnauthorized = (error: unknown): error is ApiError => error instanceof ApiError && error.code === 401

/** An error of the review itself does not mean that the reviewed key is invalid. */
async function create(resources: Resources, key: string): Promise<JsonObject> {
  try {
    const { object } = await resources.create(TokenReview, '', { spec: { token: key } })
    return (object.status ?? {}) as JsonObject
  } catch (error) {
    if (error instanceof ApiError && error.code === 429) throw error
    // Clients would think that a bare 401 is about their own key.
    const why = isUnauthorized(error)
      ? `it rejected the gateway's own access key; ask the operator of the gateway to replace it`
      : (error as Error).message
    throw unavailable(`the management API cannot review the access key: ${why}`)
  }
}

type Status = {
  readonly authenticated?: boolean
  readonly user?: Pick<Caller, 'username' | 'groups' | 'uid' | 'extra'>
}

/** A newer server may restrict keys in ways that this gateway does not know. */
function parseScope(text: string | undefined): Scope | undefined {
  const scope: unknown = text === undefined ? undefined : JSON.parse(text)
  if (!isKnownScope(scope))
    throw unauthorized('the access key has a scope that this gateway does not know; update the gateway')
  return scope as Scope | undefined
}

function reviewed(status: Status): Awaited<ReturnType<Review>> {
  const { authenticated, user } = status
  if (!authenticated || !user?.username) return undefined
  const extra = (name: string) => user.extra?.[`authentication.platform.sh/${name}`]?.[0]
  const scope = parseScope(extra('scope'))
  const endsIn = Number(extra('key-ends-in') ?? Number.NaN) * 1000
  return {
    caller: {
      username: user.username,
      groups: user.groups ?? [],
      ...(extra('key') ? { key: extra('key') as string } : {}),
      ...(scope === undefined ? {} : { scope }),
    },
    keyUid: extra('key-uid') ?? '',
    ...(Number.isNaN(endsIn) ? {} : { endsIn }),
  }
}
