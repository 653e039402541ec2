// `platform create accesskey` and `create token`: keys and tokens, each shown once.

import { X509Certificate } from 'node:crypto'
import { ApiError } from '../../api/errors.ts'
import type { Json, JsonObject } from '../../api/object.ts'
import { type Command, defineCommand, type Given, type Io, UsageError } from '../../host/command.ts'
import { inWordsOf, readLifetime } from '../../host/duration.ts'
import { quoted } from '../../host/sanitize.ts'
import { DirectClusterEndpointToken } from '../../kinds/direct-cluster-endpoint-token.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { Team } from '../../kinds/team.ts'
import { contextFlag, dryRunFlag, isDryRun, outputFlag } from '../flags.ts'
import { fingerprintOf } from '../login/trust.ts'
import { nameOf, printJson } from '../print.ts'
import { openSession, type Session } from '../session.ts'
import { readsEverything } from './key-summary.ts'
import { lostBy, shownOnce, warnings } from './shown-once.ts'

const scopeFlags = {
  'scope-project': { type: 'list', value: 'PROJECT', what: 'Only this project.' },
  'scope-space': { type: 'list', value: 'PROJECT/SPACE', what: 'Only this space.' },
  'scope-virtualcluster': { type: 'list', value: 'PROJECT/NAME', what: 'Only this virtual cluster.' },
  'scope-cluster': { type: 'list', value: 'CLUSTER', what: 'Only this connected cluster.' },
  'scope-role': {
    type: 'list',
    value: 'ROLE',
    what: `And what this role opens. ${readsEverything}`,
  },
} as const

const secretOutput = {
  output: {
    ...outputFlag.output,
    what: 'How to print; value: just the key or token; connection: KEY@URL#CA, for PLATFORM_ACCESS_KEY.',
    choices: ['value', 'connection', 'json', 'yaml', 'name'],
    default: 'value',
  },
} as const

type ScopeFlags = Given<typeof scopeFlags>['flags']

/** undefined where nothing is confined. Throws UsageError. */
function scopeOf(flags: ScopeFlags): JsonObject | undefined {
  const problems: string[] = []
  const pair = (flag: keyof ScopeFlags, field: string) =>
    flags[flag].map(text => {
      const [project = '', name = '', ...more] = text.split('/')
      if (!project || !name || more.length) problems.push(`--${flag}: ${quoted(text)} must be PROJECT/NAME`)
      return { project, [field]: name }
    })
  const scope = {
    projects: flags['scope-project'].map(project => ({ project })),
    spaces: pair('scope-space', 'space'),
    virtualClusters: pair('scope-virtualcluster', 'virtualCluster'),
    clusters: flags['scope-cluster'].map(cluster => ({ cluster })),
    roles: flags['scope-role'].map(role => ({ role })),
  }
  if (problems.length) throw new UsageError(problems)
  const set = Object.entries(scope).filter(([, entries]) => entries.length)
  return set.length ? Object.fromEntries(set) : undefined
}

/** Entries add up: a narrow one beside a wide one confines nothing. */
function warnOfRole(io: Io, { roles = [], ...narrow }: { readonly [field: string]: Json }): void {
  const isWide = (roles as { readonly role: string }[]).some(({ role }) => role === 'platform-cli')
  if (!isWide || !Object.keys(narrow).length) return
  io.err(`platform: warning: ${readsEverything} What stands beside it does not confine it.\n`)
}

export const createAccessKey: Command = defineCommand({
  words: ['create', 'accesskey'],
  what: 'Make an access key and print it; it is shown this once.',
  examples: [
    {
      what: 'For a pipeline, a week, one project',
      command: 'platform create accesskey ci --ttl 7d --scope-project shop',
    },
    {
      what: 'Everything the pipeline needs in one variable',
      command: 'platform create accesskey ci --ttl 7d -o connection',
    },
    { what: 'A key of a team', command: 'platform create accesskey deploy --for-team web --ttl 2w' },
    { what: 'Without a scope: for all that you may', command: 'platform create accesskey laptop --ttl 30d' },
  ],
  flags: {
    ...contextFlag,
    ...secretOutput,
    ...dryRunFlag,
    'for-team': { type: 'text', value: 'TEAM', what: 'A key of this team instead of your own.' },
    'for-user': { type: 'text', value: 'USER', what: 'A key of this user; administrators may.' },
    description: { type: 'text', value: 'TEXT', what: 'What it is for.', mayBeEmpty: true },
    ttl: { type: 'text', value: 'TIME', what: 'How long it lives, such as 12h, 7d or 2w; by default for ever.' },
    sliding: { type: 'switch', what: 'Count the time from its last use instead of its creation.' },
    ...scopeFlags,
  },
  positionals: [{ name: 'NAME', what: 'name of the key' }],
  run: async ({ flags, words: [name = ''] }, io) => {
    if (flags['for-team'] && flags['for-user']) throw new UsageError(['--for-team and --for-user exclude each other'])
    if (flags.sliding && flags.ttl === undefined)
      throw new UsageError(['--sliding needs --ttl TIME: a key that never ends counts no time'])
    const scope = scopeOf(flags)
    warnOfRole(io, scope ?? {})
    const spec = {
      ...(flags['for-team'] ? { team: flags['for-team'] } : {}),
      ...(flags['for-user'] ? { user: flags['for-user'] } : {}),
      ...(flags.description ? { description: flags.description } : {}),
      ...(flags.ttl === undefined ? {} : { ttl: readLifetime(flags.ttl, 'the key never ends') }),
      ...(flags.sliding ? { ttlAfterLastActivity: true } : {}),
      ...(scope ? { scope } : {}),
    }
    const session = await openSession(io, flags)
    try {
      const dryRun = isDryRun(flags)
      const options = { dryRun, fieldManager: 'platform', warn: warnings(io) }
      if (flags['for-team']) await checkTeam(session, flags['for-team'])
      const { object } = await session.resources.create(OwnedAccessKey, '', { metadata: { name }, spec }, options)
      io.err(`${nameOf(OwnedAccessKey, object)} created${dryRun ? ' (dry run)' : '; its key is shown this once'}\n`)
      if (!dryRun) printSecret(io, session, object, flags.output)
      return 0
    } finally {
      session.close()
    }
  },
})

/** A key of a team that is not there would be somebody's as soon as it is. Who may not look at teams is not told whether one is. */
async function checkTeam({ resources }: Session, name: string): Promise<void> {
  const code = await resources.get(Team, { namespace: '', name }).then(
    () => 200,
    error => (error instanceof ApiError ? error.code : 0),
  )
  if (code === 404)
    throw new ApiError(404, 'NotFound', `there is no team "${name}": platform create team ${name} makes it`)
}

export function printSecret(
  io: Io,
  { server, ca }: Session,
  object: Parameters<typeof nameOf>[1],
  output: string,
): void {
  const secret = shownOnce(object) ?? ''
  if (output === 'json' || output === 'yaml') printJson(io, object, output)
  else if (output === 'name') {
    io.out(`${object.metadata.name ?? ''}\n`)
    if (secret) io.err(lostBy('name', object))
  } else if (output === 'connection')
    io.out(`${secret}@${server}${ca ? `#${fingerprintOf(new X509Certificate(ca))}` : ''}\n`)
  else io.out(`${secret}\n`)
}

export const createToken = defineCommand({
  words: ['create', 'token'],
  what: 'Make a short-lived token for connected clusters and print it.',
  examples: [
    { what: 'An hour at one cluster', command: 'platform create token --ttl 1h --scope-cluster edge' },
    {
      what: 'At one that trusts the service itself: at most 15 minutes, and nothing else in the scope',
      command: 'platform create token --ttl 15m --scope-cluster prod',
    },
    { what: 'Without a scope: wherever the access key may', command: 'platform create token --ttl 10m' },
  ],
  flags: {
    ...contextFlag,
    output: {
      ...secretOutput.output,
      what: 'How to print; value: just the token.',
      choices: ['value', 'json', 'yaml'],
    },
    ttl: { type: 'text', value: 'TIME', what: 'How long it lives; by default an hour.' },
    ...scopeFlags,
  },
  run: async ({ flags }, io) => {
    const scope = scopeOf(flags)
    warnOfRole(io, scope ?? {})
    const ttl = flags.ttl === undefined ? undefined : readLifetime(flags.ttl, 'it lives for an hour')
    const spec = { ...(ttl === undefined ? {} : { ttl }), ...(scope ? { scope } : {}) }
    const session = await openSession(io, flags)
    try {
      const { object } = await session.resources
        .create(DirectClusterEndpointToken, '', { spec }, { warn: warnings(io) })
        .catch(inWordsOf('--ttl', flags.ttl, 'spec.ttl'))
      printSecret(io, session, object, flags.output)
      return 0
    } finally {
      session.close()
    }
  },
})
