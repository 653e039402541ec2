// `platform login`: trusts the server first, then sends it the key, then remembers both.

import { ApiError } from '../../api/errors.ts'
import type { Resources } from '../../api/resources.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { isMistyped } from '../../kinds/key-format.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { reviewSelf } from '../access/review-self.ts'
import { namespaceProblems } from '../flags.ts'
import { refusedScope } from '../scope-denied.ts'
import { openWay, readConnection } from '../session.ts'
import { type Context, changeContexts, forgetCopies, keepKey, readContexts } from './contexts.ts'
import { certificateIn, readFingerprint, serverOf } from './trust.ts'
import { trusted } from './trust-prompt.ts'

export const login = defineCommand({
  words: ['login'],
  what: 'Sign in to a server and make it the current context.',
  asksBefore: 'replaces a context of another server or user',
  examples: [
    {
      what: 'At a terminal: shows the CA’s fingerprint, then asks for the key',
      command: 'platform login https://127.0.0.1:8443',
    },
    {
      what: 'In a script, with the key on standard input',
      command: 'platform login https://127.0.0.1:8443 --ca-file data/ca.crt --access-key - < data/admin.key',
    },
  ],
  flags: {
    context: {
      type: 'text',
      value: 'NAME',
      what: 'Name of the context; by default the server’s host.',
      check: one =>
        /^(?!\.+$)[^\s/\\]{1,100}$/.test(one) ? [] : ['is no name of a context: no /, \\ or space, not . or ..'],
    },
    namespace: {
      type: 'text',
      short: 'n',
      value: 'NAMESPACE',
      what: 'Namespace of the context.',
      check: namespaceProblems,
    },
    'access-key': {
      type: 'text',
      value: '-',
      what: 'Read the key from standard input. Never the key itself: others see arguments. Also PLATFORM_ACCESS_KEY.',
    },
    'ca-file': { type: 'text', value: 'FILE', what: 'The CA to trust, such as the server’s ca.crt.' },
    'ca-fingerprint': {
      type: 'text',
      value: 'SHA256',
      what: 'Trust the CA with this fingerprint; the server’s first start prints it. With --ca-file both must hold.',
    },
    yes: { type: 'switch', short: 'y', what: 'Replace a context of that name without asking. Never trusts a CA.' },
  },
  positionals: [{ name: 'URL', what: 'the server, such as https://plane.example:8443' }],
  run: async ({ flags, words: [url = ''] }, io) => {
    const server = serverOf(url)
    const name = flags.context ?? new URL(server).hostname
    const before = (await readContexts(io)).contexts[name]
    const isOther = before !== undefined && before.server !== server && !flags.yes
    const given = await readGiven(io, flags, isOther && !io.ask ? [replacing(name, `for ${before.server}`)] : [])
    if (isOther) await mayReplace(io, name, `for ${before.server}`)
    const known = before?.server === server ? before.ca : undefined
    const ca = server.startsWith('http:') ? undefined : await trusted(io, server, { ...given, known })
    const key = await keyFrom(io, server, flags['access-key'] === '-')
    const who = await identify(io, { server, ca, key, caFile: flags['ca-file'] })
    if (before?.server === server && before.user !== who.user && !flags.yes)
      await mayReplace(
        io,
        name,
        `${before.user ?? 'somebody with a narrow key'} at ${server}, not ${who.user ?? 'the owner of this key'}`,
      )
    const { namespace } = flags
    const keyIn = await keep(io, name, { before, isSure: flags.yes, context: { server, ca, namespace, ...who }, key })
    io.err(`Signed in to ${server}${who.user ? ` as ${who.user}` : ''}; the current context is ${name}.\n`)
    if (keyIn === 'file') io.err('The key is in a file that only you can read: there is no keychain here.\n')
    return 0
  },
})

type Asked = { readonly [flag in 'access-key' | 'ca-file' | 'ca-fingerprint']: string | undefined }

/** Throws UsageError with everything that is wrong, beside the problems that are known, before anybody is asked anything. */
async function readGiven(io: Io, flags: Asked, known: readonly string[]) {
  const problems = [...known]
  const collect = <T>(read: () => Promise<T>) =>
    read().catch(error => {
      if (!(error instanceof UsageError)) throw error
      problems.push(...error.problems)
      return undefined
    })
  const { 'access-key': key, 'ca-file': name, 'ca-fingerprint': wanted } = flags
  if (key !== undefined && key !== '-')
    problems.push('--access-key takes - alone and reads the key from standard input: arguments are seen by others')
  const fingerprint = await collect(async () => (wanted === undefined ? undefined : readFingerprint(wanted)))
  const file = await collect(async () => {
    if (name === undefined) return undefined
    return { name, text: certificateIn(new TextDecoder().decode(await io.readFile(name)), name) }
  })
  if (problems.length) throw new UsageError(problems)
  return { fingerprint, file }
}

const contextIs = (name: string, what: string) => `the context "${name}" is ${what}`
const replacing = (name: string, what: string) =>
  `${contextIs(name, what)}; --context gives the new one another name, --yes replaces it`

async function mayReplace(io: Io, name: string, what: string): Promise<void> {
  if (!io.ask) throw new UsageError([replacing(name, what)])
  const answer = await io.ask(`platform: ${contextIs(name, what)}. Replace it? [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error('nothing was done')
}

type Kept = {
  /** What was there when it was asked about. */
  readonly before: Context | undefined
  readonly isSure: boolean
  readonly context: { [field in 'server' | 'ca' | 'namespace' | 'user' | 'keyName' | 'keyType']?: string | undefined }
  readonly key: string
}

/** Somebody else may have signed in under that name while this one was asked: theirs is not replaced either. */
async function keep(io: Io, name: string, { before, isSure, context, key }: Kept): Promise<Context['keyIn']> {
  let keyIn: Context['keyIn'] = 'file'
  await changeContexts(io, async ({ contexts }) => {
    const now = contexts[name]
    const isOurs = (one: Context | undefined) => one?.server === context.server && one?.user === context.user
    if (now && !isSure && !isOurs(now) && (now.server !== before?.server || now.user !== before.user))
      throw new ApiError(
        409,
        'Conflict',
        `another sign-in made the context "${name}" meanwhile, for ${now.user ?? 'somebody'} at ${now.server}; --context gives this one another name, --yes replaces it`,
      )
    if (now) await forgetCopies(io, name, now, key)
    keyIn = await keepKey(io, name, key)
    const namespace = context.namespace ?? (now?.server === context.server ? now?.namespace : undefined)
    const made = Object.fromEntries(Object.entries({ ...context, namespace, keyIn }).filter(([, value]) => value))
    return { current: name, contexts: { ...contexts, [name]: made as unknown as Context } }
  })
  return keyIn
}

async function keyFrom(io: Io, server: string, isStdin: boolean): Promise<string> {
  const given = isStdin ? new TextDecoder().decode(await io.readFile('-')) : io.env['PLATFORM_ACCESS_KEY']
  if (given === undefined && !io.ask)
    throw new UsageError(['there is no key: give it on standard input with --access-key -, or in PLATFORM_ACCESS_KEY'])
  const text = (given ?? (await io.ask?.('Access key: ', 'hidden')) ?? '').trim()
  const { key, server: its } = readConnection(text, 'that')
  if (its !== undefined && serverOf(its) !== server)
    throw new UsageError([`that key is for ${serverOf(its)}: it is not sent to ${server}`])
  if (!key) throw new UsageError(['the key is empty'])
  if (/[^\x21-\x7e]/.test(key) || key.length > 4000)
    throw new UsageError(['that is no access key: it has characters that no key has'])
  if (isMistyped(key)) throw new ApiError(401, 'Unauthorized', 'the key is mistyped: its checksum does not fit')
  return key
}

/** Known now, it need not be asked when one signs out. A key that may not look at itself is asked about then. */
const typeOf = (resources: Resources, name: string) =>
  resources.get(OwnedAccessKey, { namespace: '', name }).then(
    ({ object }) => String(object.spec?.['type'] ?? 'User'),
    () => undefined,
  )

/** The identity of the key. A key with a narrow scope is valid, even if it may not ask for its identity. */
async function identify(io: Io, way: Parameters<typeof openWay>[1]) {
  const { resources, close } = openWay(io, way)
  try {
    const { username, keyName } = await reviewSelf(resources)
    const keyType = keyName && (await typeOf(resources, keyName))
    return { ...(username ? { user: username } : {}), ...(keyName ? { keyName } : {}), ...(keyType ? { keyType } : {}) }
  } catch (error) {
    const refused = refusedScope(error)
    if (refused) return { user: refused.user, keyName: refused.key }
    if (error instanceof ApiError && error.code === 403) return {}
    if (error instanceof ApiError && error.code === 401)
      throw new ApiError(401, 'Unauthorized', `${way.server} refused the key: ${error.message}`)
    throw error
  } finally {
    close()
  }
}
