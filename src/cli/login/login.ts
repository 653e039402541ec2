// `platform login`: establishes trust in the server, sends the key, then stores both as a context.

import { ApiError } from '../../api/errors.ts'
import type { Resources } from '../../api/resources.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { isMistyped } from '../../kinds/key-format.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { reviewSelf } from '../access/review-self.ts'
import { namespaceProblems } from '../flags.ts'
import { openConnection, readConnection } from '../session.ts'
import { type Context, changeContexts, forgetCopies, readContexts, storeKey } from './contexts.ts'
import { certificateIn, readFingerprint, serverOf } from './trust.ts'
import { chooseCa } from './trust-prompt.ts'

export const login = defineCommand({
  words: ['login'],
  what: 'Sign in to a server and make it the current context.',
  asksBefore: 'replaces a context of another server or user',
  examples: [
    {
      what: 'At a terminal: confirm the fingerprint of the CA, then enter the key',
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
      what: 'Name of the context. Default: the host of the server.',
      check: one =>
        /^(?!\.+$)[^\s/\\]{1,100}$/.test(one) ? [] : ['is not a valid context name: no /, \\ or space, not . or ..'],
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
      what: 'Read the key from standard input (-). Also PLATFORM_ACCESS_KEY. Other users could see a key in an argument.',
    },
    'ca-file': { type: 'text', value: 'FILE', what: 'The CA to trust, such as ca.crt of the server.' },
    'ca-fingerprint': {
      type: 'text',
      value: 'SHA256',
      what: 'Trust the CA with this fingerprint, which the server prints at its first start. With --ca-file, both must match.',
    },
    yes: {
      type: 'switch',
      short: 'y',
      what: 'Replace an existing context without confirmation. Does not skip the CA confirmation.',
    },
  },
  positionals: [{ name: 'URL', what: 'the server, such as https://plane.example:8443' }],
  run: async ({ flags, words: [url = ''] }, io) => {
    const server = serverOf(url)
    const name = flags.context ?? new URL(server).hostname
    const before = (await readContexts(io)).contexts[name]
    const isOther = before !== undefined && before.server !== server && !flags.yes
    const given = await readGiven(io, flags, isOther && !io.ask ? [replacing(name, `for ${before.server}`)] : [])
    if (isOther) await confirmReplace(io, name, `for ${before.server}`)
    const known = before?.server === server ? before.ca : undefined
    const ca = server.startsWith('http:') ? undefined : await chooseCa(io, server, { ...given, known })
    const key = await keyFrom(io, server, flags['access-key'] === '-')
    const identity = await identify(io, { server, ca, key, caFile: flags['ca-file'] })
    if (before?.server === server && before.user !== identity.user && !flags.yes)
      await confirmReplace(
        io,
        name,
        `for ${before.user ?? 'a user of a scoped key'} at ${server}, not ${identity.user ?? 'the owner of this key'}`,
      )
    const { namespace } = flags
    const keyIn = await storeContext(io, name, {
      before,
      isSure: flags.yes,
      context: { server, ca, namespace, ...identity },
      key,
    })
    io.err(`Signed in to ${server}${identity.user ? ` as ${identity.user}` : ''}; the current context is ${name}.\n`)
    if (keyIn === 'file') io.err('There is no keychain: the key is in a file that only you can read.\n')
    return 0
  },
})

type LoginFlags = { readonly [flag in 'access-key' | 'ca-file' | 'ca-fingerprint']: string | undefined }

/** Throws UsageError with all problems, including `known`, before the first prompt. */
async function readGiven(io: Io, flags: LoginFlags, known: readonly string[]) {
  const problems = [...known]
  const collect = <T>(read: () => Promise<T>) =>
    read().catch(error => {
      if (!(error instanceof UsageError)) throw error
      problems.push(...error.problems)
      return undefined
    })
  const { 'access-key': key, 'ca-file': name, 'ca-fingerprint': wanted } = flags
  if (key !== undefined && key !== '-')
    problems.push('--access-key only accepts -, which reads the key from standard input: other users can see arguments')
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
  `${contextIs(name, what)}; choose another name with --context, or replace it with --yes`

async function confirmReplace(io: Io, name: string, what: string): Promise<void> {
  if (!io.ask) throw new UsageError([replacing(name, what)])
  const answer = await io.ask(`platform: ${contextIs(name, what)}. Replace it? [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error('cancelled; nothing was changed')
}

type NewContext = {
  /** The context before the confirmation. */
  readonly before: Context | undefined
  readonly isSure: boolean
  readonly context: { [field in 'server' | 'ca' | 'namespace' | 'user' | 'keyName' | 'keyType']?: string | undefined }
  readonly key: string
}

/** Throws if another sign-in changed the context during the prompts. */
async function storeContext(
  io: Io,
  name: string,
  { before, isSure, context, key }: NewContext,
): Promise<Context['keyIn']> {
  let keyIn: Context['keyIn'] = 'file'
  await changeContexts(io, async ({ contexts }) => {
    const now = contexts[name]
    const isOurs = (one: Context | undefined) => one?.server === context.server && one?.user === context.user
    if (now && !isSure && !isOurs(now) && (now.server !== before?.server || now.user !== before.user))
      throw new ApiError(
        409,
        'Conflict',
        `another sign-in created context "${name}" in the meantime, for ${now.user ?? 'an unknown user'} at ${now.server}; choose another name with --context, or replace it with --yes`,
      )
    if (now) await forgetCopies(io, name, now, key)
    keyIn = await storeKey(io, name, key)
    const namespace = context.namespace ?? (now?.server === context.server ? now?.namespace : undefined)
    const next = Object.fromEntries(Object.entries({ ...context, namespace, keyIn }).filter(([, value]) => value))
    return { current: name, contexts: { ...contexts, [name]: next as unknown as Context } }
  })
  return keyIn
}

async function keyFrom(io: Io, server: string, isStdin: boolean): Promise<string> {
  const given = isStdin ? new TextDecoder().decode(await io.readFile('-')) : io.env['PLATFORM_ACCESS_KEY']
  if (given === undefined && !io.ask)
    throw new UsageError([
      'the key is missing: pass it on standard input with --access-key -, or in PLATFORM_ACCESS_KEY',
    ])
  const text = (given ?? (await io.ask?.('Access key: ', 'hidden')) ?? '').trim()
  const { key, server: its } = readConnection(text, 'the input')
  if (its !== undefined && serverOf(its) !== server)
    throw new UsageError([`the key is for ${serverOf(its)} and was not sent to ${server}`])
  if (!key) throw new UsageError(['the key is empty'])
  if (/[^\x21-\x7e]/.test(key) || key.length > 4000)
    throw new UsageError(['the input is not an access key: it contains invalid characters or is too long'])
  if (isMistyped(key)) throw new ApiError(401, 'Unauthorized', 'the key is mistyped: its checksum does not match')
  return key
}

/** Stored for logout, which then needs no request. Returns undefined if the key may not read itself. */
const typeOf = (resources: Resources, name: string) =>
  resources.get(OwnedAccessKey, { namespace: '', name }).then(
    ({ object }) => String(object.spec?.['type'] ?? 'User'),
    () => undefined,
  )

/** Returns what is known about the caller. A scoped key that may not ask is still valid. */
async function identify(io: Io, target: Parameters<typeof openConnection>[1]) {
  const { resources, close } = openConnection(io, target)
  try {
    const { username, keyName } = await reviewSelf(resources)
    const keyType = keyName && (await typeOf(resources, keyName))
    return { ...(username ? { user: username } : {}), ...(keyName ? { keyName } : {}), ...(keyType ? { keyType } : {}) }
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return {}
    if (error instanceof ApiError && error.code === 401)
      throw new ApiError(401, 'Unauthorized', `${target.server} rejected the key: ${error.message}`)
    throw error
  } finally {
    close()
  }
}
