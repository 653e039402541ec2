// `platform create accesskey` and `create token`: creates a key or token and prints it once.

import { type Command, defineCommand, type Io, UsageError } from '../../host/command.ts'
import { readLifetime, withFlagName } from '../../host/duration.ts'
import { DirectClusterEndpointToken } from '../../kinds/direct-cluster-endpoint-token.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { contextFlag, dryRunFlag, isDryRun, namespaceFlag, outputFlag } from '../flags.ts'
import { nameOf, printJson } from '../print.ts'
import { openSession } from '../session.ts'
import { requireTeam } from '../teams/resolve-team.ts'
import { connectionAddress } from './connection-string.ts'
import { scopeFlags, scopeOf, secretFlag } from './scope-flags.ts'
import { notPrinted, shownOnce, warnings } from './shown-once.ts'

const secretOutput = {
  output: {
    ...outputFlag.output,
    what: 'Output format. value: only the key or token; connection: KEY@URL#CA, for PLATFORM_ACCESS_KEY.',
    choices: ['value', 'connection', 'json', 'yaml', 'name'],
    default: 'value',
  },
} as const

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
    { what: 'Only one secret, and only to read it', command: 'platform create accesskey app --ttl 30d --secret db' },
    { what: 'Read all of a project', command: 'platform create accesskey audit --ttl 7d --scope-project shop:ro' },
    { what: 'A key of a team', command: 'platform create accesskey deploy --for-team web --ttl 2w' },
    { what: 'Without a scope: with all your permissions', command: 'platform create accesskey laptop --ttl 30d' },
  ],
  flags: {
    ...contextFlag,
    ...secretOutput,
    ...dryRunFlag,
    'for-team': { type: 'text', value: 'TEAM', what: 'Create a key of this team instead of your own.' },
    'for-user': { type: 'text', value: 'USER', what: 'Create a key of this user. Only for administrators.' },
    'display-name': { type: 'text', value: 'TEXT', what: 'Display name.', mayBeEmpty: true },
    description: { type: 'text', value: 'TEXT', what: 'Description of the key.', mayBeEmpty: true },
    ttl: { type: 'text', value: 'TIME', what: 'Lifetime, such as 12h, 7d or 2w. Default: no expiry.' },
    sliding: { type: 'switch', what: 'Count the lifetime from the last use instead of the creation.' },
    ...scopeFlags,
    ...secretFlag,
    ...namespaceFlag,
  },
  positionals: [{ name: 'NAME', what: 'name of the key' }],
  run: async ({ flags, words: [name = ''] }, io) => {
    if (flags['for-team'] && flags['for-user']) throw new UsageError(['--for-team cannot be combined with --for-user'])
    if (flags.sliding && flags.ttl === undefined)
      throw new UsageError(['--sliding requires --ttl TIME: a key without a lifetime never expires'])
    const scopeIn = scopeOf(flags)
    const ttl = flags.ttl === undefined ? undefined : readLifetime(flags.ttl, 'the key never expires')
    const session = await openSession(io, flags)
    try {
      const scope = scopeIn(flags.namespace ?? session.namespace)
      const team = flags['for-team'] ? await requireTeam(session, flags['for-team']) : undefined
      const spec = {
        ...(flags['display-name'] ? { displayName: flags['display-name'] } : {}),
        ...(team === undefined ? {} : { team }),
        ...(flags['for-user'] ? { user: flags['for-user'] } : {}),
        ...(flags.description ? { description: flags.description } : {}),
        ...(ttl === undefined ? {} : { ttl }),
        ...(flags.sliding ? { ttlAfterLastActivity: true } : {}),
        ...(scope ? { scope } : {}),
      }
      const dryRun = isDryRun(flags)
      const address = await connectionAddress(io, session, flags.output)
      const options = { dryRun, fieldManager: 'platform', warn: warnings(io) }
      const { object } = await session.resources.create(OwnedAccessKey, '', { metadata: { name }, spec }, options)
      io.err(`${nameOf(OwnedAccessKey, object)} created${dryRun ? ' (dry run)' : '; the key is shown only once'}\n`)
      if (!dryRun) printSecret(io, object, { output: flags.output, address })
      return 0
    } finally {
      session.close()
    }
  },
})

/** `address`: from `connectionAddress`, for -o connection. */
export function printSecret(
  io: Io,
  object: Parameters<typeof nameOf>[1],
  { output, address = '' }: { readonly output: string; readonly address?: string },
): void {
  const secret = shownOnce(object) ?? ''
  if (output === 'json' || output === 'yaml') printJson(io, object, output)
  else if (output === 'name') {
    io.out(`${object.metadata.name ?? ''}\n`)
    if (secret) io.err(notPrinted('name', object))
  } else io.out(`${secret}${address}\n`)
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
    const scope = scopeOf(flags)('')
    const ttl = flags.ttl === undefined ? undefined : readLifetime(flags.ttl, 'the token is valid for one hour')
    const spec = { ...(ttl === undefined ? {} : { ttl }), ...(scope ? { scope } : {}) }
    const session = await openSession(io, flags)
    try {
      const { object } = await session.resources
        .create(DirectClusterEndpointToken, '', { spec }, { warn: warnings(io) })
        .catch(withFlagName('--ttl', flags.ttl, 'spec.ttl'))
      printSecret(io, object, { output: flags.output })
      return 0
    } finally {
      session.close()
    }
  },
})
