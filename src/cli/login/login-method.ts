// Chooses how to sign in, by the flags of `platform login` and the environment.

import { didYouMean } from '../../api/did-you-mean.ts'
import { type Flags, type Io, UsageError } from '../../host/command.ts'
import { readDuration } from '../../host/duration.ts'
import { quoted } from '../../host/sanitize.ts'

/** `any`: the browser if the server has identity providers, else a key. */
export type LoginMethod = 'key' | 'browser' | 'device' | 'workload' | 'any'

export const methodFlags = {
  device: {
    type: 'switch',
    what: 'Sign in with the browser of another device: print an address and a code to enter there.',
  },
  provider: { type: 'text', value: 'NAME', what: 'Identity provider to sign in with. Default: choose in the browser.' },
  'user-hint': { type: 'text', value: 'EMAIL', what: 'Account to suggest to the identity provider.' },
  'no-browser': { type: 'switch', what: 'Print the address of the sign-in page instead of opening a browser.' },
  timeout: {
    type: 'text',
    value: 'TIME',
    what: 'How long to wait for the confirmation in the browser. Default: 5m.',
  },
  workload: {
    type: 'switch',
    what: 'Sign in a pipeline or a pod with its own token, which the server exchanges for a key of at most an hour.',
  },
  'token-file': { type: 'text', value: 'FILE', what: 'With --workload: read the token from this file.' },
  'token-env': { type: 'text', value: 'VARIABLE', what: 'With --workload: read the token from this variable.' },
  'github-audience': {
    type: 'text',
    value: 'AUDIENCE',
    what: 'With --workload: request a token from GitHub Actions for this audience. Default audience: the server.',
  },
  gitlab: {
    type: 'text',
    value: 'VARIABLE',
    what: 'With --workload: variable of id_tokens in GitLab. Found without a flag: PLATFORM_ID_TOKEN.',
  },
} as const satisfies Flags

export type MethodFlags = {
  readonly [name in 'device' | 'no-browser' | 'workload']: boolean
} & {
  readonly [name in
    | 'provider'
    | 'user-hint'
    | 'timeout'
    | 'token-file'
    | 'token-env'
    | 'github-audience'
    | 'gitlab'
    | 'access-key']: string | undefined
}

const ofBrowser = ['provider', 'user-hint', 'no-browser', 'timeout'] as const
const tokenSources = ['token-file', 'token-env', 'github-audience', 'gitlab'] as const

/** Returns all problems of the flags together. */
export function methodOf({ env }: Io, flags: MethodFlags): { method: LoginMethod; problems: string[] } {
  const given = (names: readonly (keyof MethodFlags)[]) =>
    names.filter(name => flags[name] !== undefined && flags[name] !== false)
  const sources = given(tokenSources)
  const ways = given(['access-key', 'device', 'workload'])
  const [first] = ways
  const problems = [
    ...(first === undefined ? [] : ways.slice(1).map(one => cannotCombine(one, first))),
    ...(first === undefined ? [] : given(ofBrowser).map(one => cannotCombine(first, one))),
    ...(ways.includes('workload') ? [] : sources.map(one => `--${one} requires --workload`)),
    ...(sources.length > 1 ? [`${sources.map(one => `--${one}`).join(' and ')} both provide a token: use one`] : []),
  ]
  const method = first === undefined ? (given(ofBrowser).length ? 'browser' : 'any') : (methods[first] ?? 'any')
  const isSet = env['PLATFORM_ACCESS_KEY'] !== undefined
  if (isSet && method !== 'key' && method !== 'any')
    problems.push(
      'PLATFORM_ACCESS_KEY is set, and its key would be used instead of the new one: unset it, or sign in without flags',
    )
  return { method: isSet && method === 'any' ? 'key' : method, problems }
}

const methods: { readonly [flag: string]: LoginMethod } = {
  'access-key': 'key',
  device: 'device',
  workload: 'workload',
}
const cannotCombine = (one: string, other: string) => `--${one} cannot be combined with --${other}`

/** Seconds. */
export function timeoutOf({ timeout }: Pick<MethodFlags, 'timeout'>): number {
  if (timeout === undefined) return 300
  const seconds = readDuration('--timeout', timeout)
  if (seconds > 0 && seconds <= 3600) return seconds
  throw new UsageError([`--timeout: ${quoted(timeout)} must be between 1s and 1h`])
}

/** Throws UsageError if the server cannot do what the flags ask for. */
export function checkProviders(server: string, known: readonly string[], wanted: string | undefined): void {
  if (!known.length)
    throw new UsageError([
      `no identity provider is configured on ${server}: sign in with an access key, on standard input with --access-key -, or in PLATFORM_ACCESS_KEY`,
    ])
  if (wanted === undefined || known.includes(wanted)) return
  const hint = didYouMean(wanted, known) || `; known providers: ${known.join(', ')}`
  throw new UsageError([`unknown provider ${quoted(wanted)}${hint}`])
}
