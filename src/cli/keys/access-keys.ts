// `platform create accesskey` and `create token`: creates a key or token and prints it once.

import { X509Certificate } from 'node:crypto'
import { ApiError } from '../../api/errors.ts'
import type { Json, JsonObject } from '../../api/object.ts'
import { type Command, defineCommand, type Given, type Io, UsageError } from '../../host/command.ts'
import { readLifetime, withFlagName } from '../../host/duration.ts'
import { quoted } from '../../host/sanitize.ts'
import { DirectClusterEndpointToken } from '../../kinds/direct-cluster-endpoint-token.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { Team } from '../../kinds/team.ts'
import { contextFlag, dryRunFlag, isDryRun, outputFlag } from '../flags.ts'
import { fingerprintOf } from '../login/trust.ts'
import { nameOf, printJson } from '../print.ts'
import { openSession, type Session } from '../session.ts'
import { readsEverything } from './key-summary.ts'
import { notPrinted, shownOnce, warnings } from './shown-once.ts'

const scopeFlags = {
  'scope-project': { type: 'list', value: 'PROJECT', what: 'Only this project.' },
  'scope-space': { type: 'list', value: 'PROJECT/SPACE', what: 'Only this space.' },
  'scope-virtualcluster': { type: 'list', value: 'PROJECT/NAME', what: 'Only this virtual cluster.' },
  'scope-cluster': { type: 'list', value: 'CLUSTER', what: 'Only this connected cluster.' },
  'scope-role': {
    type: 'list',
    value: 'ROLE',
    what: `Also what this role allows. ${readsEverything}`,
  },
} as const

const secretOutput = {
  output: {
    ...outputFlag.output,
    what: 'Output format. value: only the key or token; connection: KEY@URL#CA, for PLATFORM_ACCESS_KEY.',
    choices: ['value', 'connection', 'json', 'yaml', 'name'],
    default: 'value',
  },
} as const

type ScopeFlags = Given<typeof scopeFlags>['flags']

/** Returns undefined if no scope flag is set. Throws UsageError. */
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

/** Scope entries add up, so a narrow entry does not restrict a wide one. */
function warnAboutRole(io: Io, { roles = [], ...narrow }: { readonly [field: string]: Json }): void {
  const isWide = (roles as { readonly role: string }[]).some(({ role }) => role === 'platform-cli')
  if (!isWide || !Object.keys(narrow).length) return
  io.err(`platform: warning: ${readsEverything} The other scope flags do not restrict it.\n`)
}

export const createAccessKey: Command = defineCommand({
  words: ['create', 'accesskey'],
  what: 'Create an access key and print it. It is shown only once.',
  examples: [
    {
      what: 'For a pipeline: one week, one project',
      command: 'platform create accesskey ci --ttl 7d --scope-project shop',
    },
    {
      what: 'Everything the pipeline needs in one variable',
      command: 'platform create accesskey ci --ttl 7d -o connection',
    },
    { what: 'A key of a team', command: 'platform create accesskey deploy --for-team web --ttl 2w' },
    { what: 'Without a scope: with all your permissions', command: 'platform create accesskey laptop --ttl 30d' },
  ],
  flags: {
    ...contextFlag,
    ...secretOutput,
    ...dryRunFlag,
    'for-team': { type: 'text', value: 'TEAM', what: 'Create a key of this team instead of your own.' },
    'for-user': { type: 'text', value: 'USER', what: 'Create a key of this user. Only for administrators.' },
    description: { type: 'text', value: 'TEXT', what: 'Description of the key.', mayBeEmpty: true },
    ttl: { type: 'text', value: 'TIME', what: 'Lifetime, such as 12h, 7d or 2w. Default: no expiry.' },
    sliding: { type: 'switch', what: 'Count the lifetime from the last use instead of the creation.' },
    ...scopeFlags,
  },
  positionals: [{ name: 'NAME', what: 'name of the key' }],
  run: async ({ flags, words: [name = ''] }, io) => {
    if (flags['for-team'] && flags['for-user']) throw new UsageError(['--for-team cannot be combined with --for-user'])
    if (flags.sliding && flags.ttl === undefined)
      throw new UsageError(['--sliding requires --ttl TIME: a key without a lifetime never expires'])
    const scope = scopeOf(flags)
    warnAboutRole(io, scope ?? {})
    const spec = {
      ...(flags['for-team'] ? { team: flags['for-team'] } : {}),
      ...(flags['for-user'] ? { user: flags['for-user'] } : {}),
      ...(flags.description ? { description: flags.description } : {}),
      ...(flags.ttl === undefined ? {} : { ttl: readLifetime(flags.ttl, 'the key never expires') }),
      ...(flags.sliding ? { ttlAfterLastActivity: true } : {}),
      ...(scope ? { scope } : {}),
    }
    const session = await openSession(io, flags)
    try {
      const dryRun = isDryRun(flags)
      const options = { dryRun, fieldManager: 'platform', warn: warnings(io) }
      if (flags['for-team']) await checkTeam(session, flags['for-team'])
      const { object } = await session.resources.create(OwnedAccessKey, '', { metadata: { name }, spec }, options)
      io.err(`${nameOf(OwnedAccessKey, object)} created${dryRun ? ' (dry run)' : '; the key is shown only once'}\n`)
      if (!dryRun) printSecret(io, session, object, flags.output)
      return 0
    } finally {
      session.close()
    }
  },
})

/** A key of a missing team would work as soon as somebody creates the team. Skipped if the caller may not read teams. */
async function checkTeam({ resources }: Session, name: string): Promise<void> {
  const code = await resources.get(Team, { namespace: '', name }).then(
    () => 200,
    error => (error instanceof ApiError ? error.code : 0),
  )
  if (code === 404)
    throw new ApiError(404, 'NotFound', `team "${name}" not found: create it with platform create team ${name}`)
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
    if (secret) io.err(notPrinted('name', object))
  } else if (output === 'connection')
    io.out(`${secret}@${server}${ca ? `#${fingerprintOf(new X509Certificate(ca))}` : ''}\n`)
  else io.out(`${secret}\n`)
}

export const createToken = defineCommand({
  words: ['create', 'token'],
  what: 'Create a short-lived token for connected clusters and print it.',
  examples: [
    { what: 'For one cluster and one hour', command: 'platform create token --ttl 1h --scope-cluster edge' },
    {
      what: 'For a cluster that trusts the management API directly: at most 15 minutes, one cluster only',
      command: 'platform create token --ttl 15m --scope-cluster prod',
    },
    { what: 'Without a scope: for every cluster of the access key', command: 'platform create token --ttl 10m' },
  ],
  flags: {
    ...contextFlag,
    output: {
      ...secretOutput.output,
      what: 'Output format. value: only the token.',
      choices: ['value', 'json', 'yaml'],
    },
    ttl: { type: 'text', value: 'TIME', what: 'Lifetime. Default: one hour.' },
    ...scopeFlags,
  },
  run: async ({ flags }, io) => {
    const scope = scopeOf(flags)
    warnAboutRole(io, scope ?? {})
    const ttl = flags.ttl === undefined ? undefined : readLifetime(flags.ttl, 'the token is valid for one hour')
    const spec = { ...(ttl === undefined ? {} : { ttl }), ...(scope ? { scope } : {}) }
    const session = await openSession(io, flags)
    try {
      const { object } = await session.resources
        .create(DirectClusterEndpointToken, '', { spec }, { warn: warnings(io) })
        .catch(withFlagName('--ttl', flags.ttl, 'spec.ttl'))
      printSecret(io, session, object, flags.output)
      return 0
    } finally {
      session.close()
    }
  },
})
