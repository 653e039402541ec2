// `platform login`: establishes trust in the server, signs in, then stores server and key as a context.

import { ApiError } from '../../api/errors.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { Interrupted } from '../../host/interrupt.ts'
import { namespaceProblems } from '../flags.ts'
import type { TrustedServer } from '../session.ts'
import { loginWithBrowser } from './browser-login.ts'
import { type Context, readContexts } from './contexts.ts'
import { loginWithDevice } from './device-login.ts'
import { keyFrom } from './given-key.ts'
import { checkProviders, type LoginMethod, type MethodFlags, methodFlags, methodOf, timeoutOf } from './login-method.ts'
import { discardKey, identify, type NewIdentity } from './new-identity.ts'
import { oneLogin } from './one-login.ts'
import { openSignInApi, type SignInApi } from './sign-in-api.ts'
import { confirmReplace, replacing, storeContext } from './store-context.ts'
import { certificateIn, readFingerprint, serverOf } from './trust.ts'
import { chooseCa } from './trust-prompt.ts'
import { loginWithWorkload } from './workload-login.ts'

export const login = defineCommand({
  words: ['login'],
  what: 'Sign in to a server and make it the current context.',
  asksBefore: 'replaces a context of another server or user',
  examples: [
    {
      what: 'Confirm the fingerprint of the CA, then sign in with the browser, or enter a key if the server has no identity provider',
      command: 'platform login https://127.0.0.1:8443',
    },
    { what: 'On a machine without a browser', command: 'platform login https://plane.example --device' },
    {
      what: 'In a script, with the key on standard input',
      command: 'platform login https://127.0.0.1:8443 --ca-file data/ca.crt --access-key - < data/admin.key',
    },
    { what: 'In a pipeline or a pod, with its own token', command: 'platform login https://plane.example --workload' },
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
    ...methodFlags,
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
    const { method, problems } = methodOf(io, flags)
    const timeout = timeoutOf(flags)
    if (isOther && !io.ask) problems.push(replacing(name, `for ${before.server}`))
    const given = await readGiven(io, flags, problems)
    if (isOther) await confirmReplace(io, name, `for ${before.server}`)
    const known = before?.server === server ? before.ca : undefined
    const ca = server.startsWith('http:') ? undefined : await chooseCa(io, server, { ...given, known })
    const target = { server, ca, caFrom: flags['ca-file'] }
    const login = { name, before, target, namespace: flags.namespace, isSure: flags.yes }
    const api = openSignInApi(io, target)
    try {
      const chosen = await chooseMethod(io, api, method, flags)
      if (chosen === 'key') {
        const key = await keyFrom(io, server, flags['access-key'] === '-')
        await finish(io, login, key, await identify(io, { ...target, key }))
        return 0
      }
      const keyType = chosen === 'workload' ? 'Other' : 'Login'
      await oneLogin(io, { name, server, keyType, before }, async stored => {
        const valid = stored === undefined ? undefined : await identifyValid(io, { ...target, key: stored })
        if (stored !== undefined && valid) return finish(io, login, stored, valid)
        const key = await obtainKey(io, api, chosen, { ...flags, timeout })
        try {
          return await finish(io, login, key, await identify(io, { ...target, key }))
        } catch (error) {
          await discardKey(io, { ...target, key })
          throw error
        }
      }).then(({ teams, expiry }) => {
        io.err(`Teams: ${teams.join(', ') || 'none'}\n`)
        if (expiry !== undefined) io.err(`${expiry}\n`)
      })
      return 0
    } catch (error) {
      if (error instanceof Interrupted) return error.exitCode
      throw error
    } finally {
      api.close()
    }
  },
})

/** Otherwise a job with a missing variable would wait for somebody until the timeout. */
const isPipeline = ({ env, ask }: Io) => ask === undefined && !['', 'false', '0'].includes(env['CI'] ?? '')

/** Asks the server only if it matters whether it has identity providers. */
async function chooseMethod(io: Io, api: SignInApi, method: LoginMethod, flags: MethodFlags) {
  if (method === 'key' || method === 'workload') return method
  const providers = await api.providers()
  if (method === 'any' && providers.length && isPipeline(io))
    throw new UsageError([
      'a pipeline has no browser: sign in with --workload, or with an access key in PLATFORM_ACCESS_KEY',
    ])
  if (method === 'any') return providers.length ? 'browser' : 'key'
  checkProviders(api.server, providers, flags.provider)
  return method
}

function obtainKey(
  io: Io,
  api: SignInApi,
  method: 'browser' | 'device' | 'workload',
  flags: Omit<MethodFlags, 'timeout'> & { readonly timeout: number },
): Promise<string> {
  if (method === 'workload') return loginWithWorkload(io, api, flags)
  if (method === 'device') return loginWithDevice(io, api)
  return loginWithBrowser(io, api, {
    provider: flags.provider,
    hint: flags['user-hint'],
    opensBrowser: !flags['no-browser'],
    timeout: flags.timeout,
  })
}

/** Returns undefined if the server rejects the key. */
const identifyValid = (io: Io, target: TrustedServer & { readonly key: string }) =>
  identify(io, target).catch(error => {
    if (error instanceof ApiError && error.code === 401) return undefined
    throw error
  })

type Login = {
  readonly name: string
  readonly before: Context | undefined
  readonly target: TrustedServer
  readonly namespace: string | undefined
  readonly isSure: boolean
}

async function finish(io: Io, login: Login, key: string, identity: NewIdentity): Promise<NewIdentity> {
  const { name, before, namespace, isSure } = login
  const { server, ca } = login.target
  const { user, keyName, keyType } = identity
  if (before?.server === server && before.user !== user && !isSure)
    await confirmReplace(
      io,
      name,
      `for ${before.user ?? 'a user of a scoped key'} at ${server}, not ${user ?? 'the owner of this key'}`,
    )
  const context = { server, ca, namespace, user, keyName, keyType }
  const keyIn = await storeContext(io, name, { before, isSure, context, key })
  io.err(`Signed in to ${server}${user ? ` as ${user}` : ''}; the current context is ${name}.\n`)
  if (keyIn === 'file') io.err('There is no keychain: the key is in a file that only you can read.\n')
  return identity
}

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
