// Opens a session: the server, key, CA and namespace from a context or from the environment.

import { X509Certificate } from 'node:crypto'
import { ApiError } from '../api/errors.ts'
import type { Resources } from '../api/resources.ts'
import { connect, type Fetch } from '../client/connect.ts'
import { errorOf } from '../client/response-error.ts'
import { retrying } from '../client/retry.ts'
import { rowsFrom } from '../client/table-rows.ts'
import { type Io, UsageError } from '../host/command.ts'
import { quoted } from '../host/sanitize.ts'
import { connectionProblem } from '../transport/connection-error.ts'
import { openTransport } from '../transport/transport.ts'
import { namespaceProblems } from './flags.ts'
import { type Context, contextNamed, readContexts, readKey } from './login/contexts.ts'
import {
  certificateIn,
  fetchCertificates,
  fingerprintOf,
  isTlsFailure,
  isUntrusted,
  serverOf,
  untrusted,
  withFingerprint,
} from './login/trust.ts'
import { proxyEnv, proxyNote } from './proxy-env.ts'

export type Session = {
  /** Name of the context; empty if the environment provides server and key. */
  readonly context: string
  readonly server: string
  readonly ca: string | undefined
  readonly key: string
  readonly namespace: string
  readonly resources: Resources
  /** Table rows have no secret data, so listing secrets does not count as reading them (D35). */
  readonly rows: Pick<Resources, 'get' | 'list' | 'watch'>
  readonly fetch: Fetch
  close(): void
}
export type SessionFlags = { readonly context?: string | undefined; readonly namespace?: string | undefined }

type Target = Pick<Session, 'context' | 'server' | 'ca' | 'key' | 'namespace'> & {
  /** The origin of the CA, if the user did not trust the CA at sign-in: its file, or the connection string. */
  readonly caFrom?: string | undefined
  /** The command that renews the key, if it is that of a session. */
  readonly loginCommand?: string | undefined
}

export type TrustedServer = Pick<Target, 'server' | 'ca' | 'caFrom'> & Partial<Pick<Target, 'context'>>

/** `trust` loads the CA, which may need a connection to the server. */
type ResolvedTarget = Omit<Target, 'ca'> & { readonly trust: () => Promise<string | undefined> }

/** The target of a session, without a network request. Throws like `openSession`. */
export async function sessionTarget(
  io: Io,
  flags: SessionFlags,
): Promise<Pick<Session, 'server' | 'key' | 'namespace'>> {
  const { server, key, namespace } = await resolveTarget(io, flags.context)
  return { server, key, namespace: flags.namespace ?? namespace }
}

/** Throws ApiError 401 if there is no sign-in (exit code 4). */
export async function openSession(io: Io, flags: SessionFlags = {}): Promise<Session> {
  const { trust, ...resolved } = await resolveTarget(io, flags.context)
  const target: Target = { ...resolved, ca: await trust() }
  return { ...target, ...openConnection(io, target), ...(flags.namespace ? { namespace: flags.namespace } : {}) }
}

/** Connects to a server that is already trusted. Without a key, requests are anonymous. */
export function openConnection(io: Io, target: TrustedServer & Partial<Pick<Target, 'key' | 'loginCommand'>>) {
  const { server, ca, key, loginCommand } = target
  const access = {
    server,
    namespace: '',
    insecure: false,
    ...(key === undefined ? {} : { token: key }),
    ...(ca ? { ca: { text: ca } } : {}),
  }
  const transport = openTransport(access, { env: proxyEnv(io.env, server), now: io.now })
  const send = withTraceparent(io.env['TRACEPARENT'], transport.fetch)
  const reliable = retrying((url, init) => send(url, init).catch(explainFailure(io, target)), { isRetryable })
  const fetch = loginCommand === undefined ? reliable : namingLogin(reliable, loginCommand)
  const warn = (text: string) => io.err(`platform: warning: ${text}\n`)
  const options = { url: server, fetch, warn }
  return { fetch, resources: connect(options), rows: rowsFrom(options), close: transport.close }
}

/** A pipeline that is traced sets this variable, and then sees the requests of its commands. */
function withTraceparent(traceparent: string | undefined, fetch: Fetch): Fetch {
  if (!traceparent || !/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(traceparent)) return fetch
  return (url, init) =>
    fetch(url, { ...init, headers: { ...(init.headers as { [name: string]: string }), traceparent } })
}

/** A rejected key of a session has ended, and only a new sign-in helps. */
const namingLogin =
  (fetch: Fetch, loginCommand: string): Fetch =>
  async (url, init) => {
    const response = await fetch(url, init)
    if (response.status !== 401) return response
    const { message } = await errorOf(response)
    throw new ApiError(401, 'Unauthorized', `${message}: ${loginCommand}`)
  }

/** Whether a retry may succeed. A timeout is not retried: the user would wait five times as long. */
export const isRetryable = (error: unknown) =>
  !(error instanceof ApiError && (isUntrusted(error) || connectionProblem(error) === 'timeout'))

/** Explains connection failures. TLS fails before the key is sent, so an untrusted server never sees it. */
const explainFailure =
  (io: Io, { server, ca, caFrom, context }: TrustedServer) =>
  async (error: Error): Promise<never> => {
    const problem = connectionProblem(error)
    if (problem === 'aborted' && server.startsWith('http:') && (await speaksTls(io, server)))
      throw untrusted(`cannot reach ${server}: the port speaks TLS; use https://`)
    if (problem === 'wrong-certificate' || isTlsFailure(error.cause)) throw untrusted(error.message)
    if (problem !== 'untrusted-ca') {
      const note = error.cause === undefined ? '' : proxyNote(io.env, server)
      if (!note) throw error
      throw Object.assign(new ApiError(503, 'ServiceUnavailable', `${error.message}${note}`), { cause: error.cause })
    }
    const why = caFrom
      ? `its certificate is not signed by the CA in ${caFrom}; nothing was sent`
      : ca
        ? 'its certificate is not signed by the CA trusted at sign-in; nothing was sent'
        : 'its certificate is not signed by a CA that this machine trusts; nothing was sent'
    const hint = caFrom
      ? ''
      : context === ''
        ? '. Set PLATFORM_CA_FILE or PLATFORM_CA_FINGERPRINT to trust its CA'
        : `. If the server was reinstalled: platform login ${server}`
    throw untrusted(`cannot trust ${server}: ${why}${hint}`)
  }

const speaksTls = (io: Io, server: string) =>
  fetchCertificates(server.replace(/^http:/, 'https:'), io.env).then(
    () => true,
    () => false,
  )

const notSignedIn = (why: string) => new ApiError(401, 'Unauthorized', `${why}: platform login URL`)

async function resolveTarget(io: Io, contextName: string | undefined): Promise<ResolvedTarget> {
  const { PLATFORM_ACCESS_KEY: given, PLATFORM_SERVER: at = '' } = io.env
  if (given !== undefined) checkSingleKey(io, given, contextName)
  const { key, server = at, ...pinned } = readConnection(given ?? '', 'PLATFORM_ACCESS_KEY')
  if (key && server) return fromEnvironment(io, { key, server, ...pinned })
  const all = await readContexts(io)
  if (key && all.current === undefined)
    throw new UsageError([
      'PLATFORM_ACCESS_KEY is set without a server: set PLATFORM_SERVER, or use KEY@URL#sha256:FINGERPRINT',
    ])
  if (at && !key && all.current === undefined && contextName === undefined) throw missingKey(serverOf(at))
  const name = contextNamed(all, contextName)
  const context = all.contexts[name] as Context
  if (!key) checkServer(io, { name, server: context.server, requested: contextName })
  const own = key || (await readKey(io, name, context))
  if (!own) throw notSignedIn(`context "${name}" has no key`)
  const isSession = !key && context.keyType === 'Login'
  return {
    context: name,
    key: own,
    ...targetOf(io, context),
    ...(isSession ? { loginCommand: loginCommandOf(context.server, name) } : {}),
  }
}

const loginCommandOf = (server: string, context: string) =>
  `platform login ${server}${new URL(server).hostname === context ? '' : ` --context ${context}`}`

const missingKey = (server: string) =>
  new ApiError(
    401,
    'Unauthorized',
    `PLATFORM_SERVER is set without a key: set PLATFORM_ACCESS_KEY, or run platform login ${server}`,
  )

type ContextServer = { readonly name: string; readonly server: string; readonly requested: string | undefined }

/** Never sends the key of a context to another server. An explicit --context overrides PLATFORM_SERVER. */
export function checkServer({ env }: Io, { name, server, requested }: ContextServer): void {
  const { PLATFORM_SERVER: at } = env
  if (!at || requested !== undefined || serverOf(at) === server) return
  throw new UsageError([
    `PLATFORM_SERVER is ${serverOf(at)}, but the key of context "${name}" is for ${server}: set PLATFORM_ACCESS_KEY too, unset PLATFORM_SERVER, or use --context ${name}`,
  ])
}

/** Prevents acting as the wrong user: rejects an empty variable, and a key besides a context. */
function checkSingleKey({ env }: Io, given: string, contextName: string | undefined): void {
  if (given === '') throw new UsageError(['PLATFORM_ACCESS_KEY is empty: set or unset it'])
  if (contextName === undefined) return
  const isVariable = env['PLATFORM_CONTEXT'] === contextName
  const [source, fix] = isVariable
    ? ['PLATFORM_CONTEXT', 'unset one of them']
    : ['--context', 'unset PLATFORM_ACCESS_KEY or remove --context']
  throw new UsageError([`PLATFORM_ACCESS_KEY and ${source} (${quoted(contextName)}) both provide a key: ${fix}`])
}

/** For commands that always use the key of a context. */
export function withoutKey(io: Io): Io {
  const { PLATFORM_ACCESS_KEY: _, ...env } = io.env
  return { ...io, env }
}

const targetOf = (io: Io, { server, ca, namespace = 'default' }: Context) => ({
  server,
  trust: async () => ca,
  namespace: namespaceIn(io) ?? namespace,
})

/** Returns undefined if the variable is not set. Throws UsageError if it is not a valid name. */
export function namespaceIn({ env: { PLATFORM_NAMESPACE: name } }: Io): string | undefined {
  const problems = name ? namespaceProblems(name) : []
  if (problems.length) throw new UsageError(problems.map(one => `PLATFORM_NAMESPACE: ${quoted(name ?? '')} ${one}`))
  return name || undefined
}

type Connection = {
  readonly key: string
  readonly server?: string
  readonly fingerprint?: string
  /** The CA itself, as PEM, if the server does not send it. */
  readonly ca?: string
}

/** Parses a key, or a connection string KEY@URL#sha256:FINGERPRINT or KEY@URL#ca:CERTIFICATE for pipelines. Throws UsageError. */
export function readConnection(text: string, from: string): Connection {
  const [, key, server, fingerprint, encoded] =
    /^([^@]+)@(https?:\/\/[^#]+)(?:#(?:(sha256:[0-9a-f]{64})|ca:([\w-]+)))?$/i.exec(text) ?? []
  const ca = encoded === undefined ? undefined : decodeCertificate(encoded)
  if (key && server && (encoded === undefined || ca))
    return {
      ...{ key, server },
      ...(fingerprint ? { fingerprint } : {}),
      ...(ca ? { fingerprint: fingerprintOf(ca), ca: ca.toString() } : {}),
    }
  // Imported keys may contain @ or #, so reject only text that looks like a connection string.
  if (/^plat_\w*[@#]|@https?:|#sha256:/i.test(text))
    throw new UsageError([
      `${from} is neither a key nor a valid KEY@URL#sha256:FINGERPRINT or KEY@URL#ca:CERTIFICATE: the URL starts with https://, the fingerprint has 64 hexadecimal digits`,
    ])
  return { key: text }
}

/** Returns undefined if the text is not a certificate, for example because its end is missing. */
function decodeCertificate(text: string): X509Certificate | undefined {
  try {
    return new X509Certificate(Buffer.from(text, 'base64url'))
  } catch {
    return undefined
  }
}

function fromEnvironment(io: Io, connection: Connection & { readonly server: string }): ResolvedTarget {
  const { key, fingerprint, ca } = connection
  const server = serverOf(connection.server)
  const { PLATFORM_CA_FILE: file, PLATFORM_CA_FINGERPRINT: other } = io.env
  const wanted = fingerprint ?? other
  const trust = async () => {
    if (file) return certificateIn(new TextDecoder().decode(await io.readFile(file)), file, wanted)
    if (!wanted || !server.startsWith('https:')) return undefined
    return ca ?? withFingerprint(await fetchCertificates(server, io.env), server, wanted).toString()
  }
  return {
    context: '',
    server,
    trust,
    key,
    namespace: namespaceIn(io) ?? 'default',
    caFrom: file ?? (ca && 'the connection string'),
  }
}
