// Who one is to which server: a context, or the environment of a pipeline. Every command that talks to a server opens one.

import { ApiError } from '../api/errors.ts'
import type { Resources } from '../api/resources.ts'
import { connect, type Fetch } from '../client/connect.ts'
import { retrying } from '../client/retry.ts'
import { rowsFrom } from '../client/table-rows.ts'
import { type Io, UsageError } from '../host/command.ts'
import { quoted } from '../host/sanitize.ts'
import { connectionProblem } from '../transport/connection-error.ts'
import { openTransport } from '../transport/transport.ts'
import { namespaceProblems } from './flags.ts'
import { type Context, contextNamed, readContexts, readKey } from './login/contexts.ts'
import { certificateIn, isNoTls, isUntrusted, lookAt, serverOf, untrusted, withFingerprint } from './login/trust.ts'
import { proxyEnv, proxyNote } from './proxy-env.ts'

export type Session = {
  /** Name of the context; empty where the environment says it all. */
  readonly context: string
  readonly server: string
  readonly ca: string | undefined
  readonly key: string
  readonly namespace: string
  readonly resources: Resources
  /** For what is listed: rows of tables, without the data of secrets, so that listing them is not reading them (D35). */
  readonly rows: Pick<Resources, 'get' | 'list' | 'watch'>
  readonly fetch: Fetch
  close(): void
}
export type SessionFlags = { readonly context?: string | undefined; readonly namespace?: string | undefined }

type Way = Pick<Session, 'context' | 'server' | 'ca' | 'key' | 'namespace'> & {
  /** The file that the CA is from, where it was not trusted at sign-in. */
  readonly caFile?: string | undefined
}

type Reached = Pick<Way, 'server' | 'ca' | 'caFile'> & Partial<Pick<Way, 'context'>>

/** Which server, and how its CA is to be had: that may need to ask the server itself. */
type Place = Omit<Way, 'ca'> & { readonly trust: () => Promise<string | undefined> }

/** What a session would have, found out without asking anybody. Throws as `openSession` does. */
export async function whereTo(io: Io, flags: SessionFlags): Promise<Pick<Session, 'server' | 'key' | 'namespace'>> {
  const { server, key, namespace } = await findPlace(io, flags.context)
  return { server, key, namespace: flags.namespace ?? namespace }
}

/** Throws ApiError 401 where one is not signed in: exit code 4. */
export async function openSession(io: Io, flags: SessionFlags = {}): Promise<Session> {
  const { trust, ...place } = await findPlace(io, flags.context)
  const way: Way = { ...place, ca: await trust() }
  return { ...way, ...openWay(io, way), ...(flags.namespace ? { namespace: flags.namespace } : {}) }
}

/** For a server that is trusted already. */
export function openWay(io: Io, way: Reached & Pick<Way, 'key'>) {
  const { server, ca, key } = way
  const access = { server, namespace: '', insecure: false, token: key, ...(ca ? { ca: { text: ca } } : {}) }
  const transport = openTransport(access, { env: proxyEnv(io.env, server), now: io.now })
  const fetch = retrying((url, init) => transport.fetch(url, init).catch(plainly(io, way)), { mayPass })
  const warn = (text: string) => io.err(`platform: warning: ${text}\n`)
  const options = { url: server, fetch, warn }
  return { fetch, resources: connect(options), rows: rowsFrom(options), close: transport.close }
}

/** Whether a retry may succeed. A timeout is not retried: the user would wait five times as long. */
export const mayPass = (error: unknown) =>
  !(error instanceof ApiError && (isUntrusted(error) || connectionProblem(error) === 'timeout'))

/** What is wrong with the way itself is told as what it may be. A key is not sent to a server whose certificate does not fit. */
const plainly =
  (io: Io, { server, ca, caFile, context }: Reached) =>
  async (error: Error): Promise<never> => {
    const problem = connectionProblem(error)
    if (problem === 'aborted' && server.startsWith('http:') && (await speaksTls(io, server)))
      throw untrusted(`cannot reach ${server}: what listens there speaks TLS; it may be the port for https://`)
    if (problem === 'wrong-certificate' || isNoTls(error.cause)) throw untrusted(error.message)
    if (problem !== 'untrusted-ca') {
      const note = error.cause === undefined ? '' : proxyNote(io.env, server)
      if (!note) throw error
      throw Object.assign(new ApiError(503, 'ServiceUnavailable', `${error.message}${note}`), { cause: error.cause })
    }
    const why = caFile
      ? `its certificate is not of the CA in ${caFile}; nothing was sent`
      : ca
        ? 'its certificate is not of the CA that was trusted at sign-in; nothing was sent'
        : 'nobody this machine trusts vouches for its certificate; nothing was sent'
    const hint = caFile
      ? ''
      : context === ''
        ? '. PLATFORM_CA_FILE or PLATFORM_CA_FINGERPRINT says which CA is to be trusted'
        : `. If the server was set up anew: platform login ${server}`
    throw untrusted(`cannot trust ${server}: ${why}${hint}`)
  }

const speaksTls = (io: Io, server: string) =>
  lookAt(server.replace(/^http:/, 'https:'), io.env).then(
    () => true,
    () => false,
  )

const notSignedIn = (why: string) => new ApiError(401, 'Unauthorized', `${why}: platform login URL`)

async function findPlace(io: Io, asked: string | undefined): Promise<Place> {
  const { PLATFORM_ACCESS_KEY: given, PLATFORM_SERVER: at = '' } = io.env
  if (given !== undefined) checkAlone(io, given, asked)
  const { key, server = at, fingerprint } = readConnection(given ?? '', 'PLATFORM_ACCESS_KEY')
  if (key && server) return fromEnvironment(io, key, server, fingerprint)
  const all = await readContexts(io)
  if (key && all.current === undefined)
    throw new UsageError([
      'PLATFORM_ACCESS_KEY is set, and no server: set PLATFORM_SERVER, or put both into the one: KEY@URL#sha256:FINGERPRINT',
    ])
  if (at && !key && all.current === undefined && asked === undefined) throw keyless(serverOf(at))
  const name = contextNamed(all, asked)
  const context = all.contexts[name] as Context
  if (!key) checkServer(io, { name, server: context.server, asked })
  const own = key || (await readKey(io, name, context))
  if (!own) throw notSignedIn(`the key of context "${name}" is gone`)
  return { context: name, key: own, ...placeOf(io, context) }
}

const keyless = (server: string) =>
  new ApiError(
    401,
    'Unauthorized',
    `PLATFORM_SERVER is set, and no key: set PLATFORM_ACCESS_KEY, or platform login ${server}`,
  )

type Meant = { readonly name: string; readonly server: string; readonly asked: string | undefined }

/** A key is for its own server: another one in the environment is a mistake, unless the context is named. */
export function checkServer({ env }: Io, { name, server, asked }: Meant): void {
  const { PLATFORM_SERVER: at } = env
  if (!at || asked !== undefined || serverOf(at) === server) return
  throw new UsageError([
    `PLATFORM_SERVER is ${serverOf(at)}, and the key of the context "${name}" is for ${server}: set PLATFORM_ACCESS_KEY too, or unset PLATFORM_SERVER; --context ${name} says that the context is meant`,
  ])
}

/** Nobody acts as somebody else by mistake: a variable that is empty was meant to be filled, and two keys are one too many. */
function checkAlone({ env }: Io, given: string, asked: string | undefined): void {
  if (given === '') throw new UsageError(['PLATFORM_ACCESS_KEY is set, and empty: fill or unset it'])
  if (asked === undefined) return
  const isVariable = env['PLATFORM_CONTEXT'] === asked
  const [by, mend] = isVariable
    ? ['PLATFORM_CONTEXT', 'unset one of them']
    : ['--context', 'unset PLATFORM_ACCESS_KEY, or leave out --context']
  throw new UsageError([
    `PLATFORM_ACCESS_KEY is set, and ${by} names the context ${quoted(asked)}: each has a key; ${mend}`,
  ])
}

/** For what goes by the key of a context, whatever key the environment has. */
export function withoutKey(io: Io): Io {
  const { PLATFORM_ACCESS_KEY: _, ...env } = io.env
  return { ...io, env }
}

const placeOf = (io: Io, { server, ca, namespace = 'default' }: Context) => ({
  server,
  trust: async () => ca,
  namespace: namespaceIn(io) ?? namespace,
})

/** undefined: the environment names none. Throws UsageError where it is no name. */
export function namespaceIn({ env: { PLATFORM_NAMESPACE: name } }: Io): string | undefined {
  const problems = name ? namespaceProblems(name) : []
  if (problems.length) throw new UsageError(problems.map(one => `PLATFORM_NAMESPACE: ${quoted(name ?? '')} ${one}`))
  return name || undefined
}

type Connection = { readonly key: string; readonly server?: string; readonly fingerprint?: string }

/** A key, or everything a pipeline needs in one variable: KEY@URL#sha256:FINGERPRINT. Throws UsageError. */
export function readConnection(text: string, from: string): Connection {
  const [, key, server, fingerprint] = /^([^@]+)@(https?:\/\/[^#]+)(?:#(sha256:[0-9a-f]{64}))?$/i.exec(text) ?? []
  if (key && server) return { key, server, ...(fingerprint ? { fingerprint } : {}) }
  // Keys that people bring may have such characters in them; what looks like an address is one.
  if (/^plat_\w*[@#]|@https?:|#sha256:/i.test(text))
    throw new UsageError([
      `${from} is no key, and no KEY@URL#sha256:FINGERPRINT either: the URL begins with https://, and a fingerprint has 64 hexadecimal digits`,
    ])
  return { key: text }
}

function fromEnvironment(io: Io, key: string, at: string, fingerprint: string | undefined): Place {
  const server = serverOf(at)
  const { PLATFORM_CA_FILE: file, PLATFORM_CA_FINGERPRINT: other } = io.env
  const wanted = fingerprint ?? other
  const trust = async () => {
    if (file) return certificateIn(new TextDecoder().decode(await io.readFile(file)), file, wanted)
    if (!wanted || !server.startsWith('https:')) return undefined
    return withFingerprint(await lookAt(server, io.env), server, wanted).toString()
  }
  return { context: '', server, trust, key, namespace: namespaceIn(io) ?? 'default', caFile: file }
}
