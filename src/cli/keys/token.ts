// `platform token revoke` and `token rotate-key`: revokes direct-cluster tokens and rotates their signing key.

import { dirname, resolve } from 'node:path'
import { ApiError } from '../../api/errors.ts'
import type { Json, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { connect } from '../../client/connect.ts'
import { defineCommand, type Flags, type Io, UsageError } from '../../host/command.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { SigningKeyRotation } from '../../kinds/signing-key.ts'
import { TokenRevocation } from '../../kinds/token-revocation.ts'
import { KubeconfigError, readKubeconfig } from '../../transport/kubeconfig.ts'
import { openTransport } from '../../transport/transport.ts'
import { confirm } from '../confirm.ts'
import { contextFlag, yesFlag } from '../flags.ts'
import { proxyEnv } from '../proxy-env.ts'
import { isScopeDenial } from '../scope-denied.ts'
import { openSession, type Session } from '../session.ts'
import { isOwnedBy, keyInUse } from './key-in-use.ts'

const service = {
  ...contextFlag,
  kubeconfig: {
    type: 'text',
    value: 'FILE',
    what: 'Use this kubeconfig instead of your platform login. --context then selects one of its contexts.',
  },
} as const satisfies Flags

export const tokenRevoke = defineCommand({
  words: ['token', 'revoke'],
  what: 'Revoke direct-cluster tokens issued until now. Gateways reject them within seconds.',
  asksBefore: 'revokes tokens',
  examples: [
    { what: 'All tokens of an access key', command: 'platform token revoke --key ci --reason "laptop lost" --yes' },
    { what: 'The token with this id', command: 'platform token revoke --jti 8f14e45f-ceea-467f-a8b5-5c2b9f0a6d1e' },
    { what: 'All tokens of two users', command: 'platform token revoke --user ada --user grace' },
  ],
  flags: {
    ...service,
    ...yesFlag,
    key: { type: 'text', value: 'NAME', what: 'Tokens created with this access key.' },
    'key-uid': {
      type: 'text',
      value: 'UID',
      what: 'Tokens created with the access key of this UID, even if the key was deleted.',
    },
    jti: {
      type: 'text',
      value: 'ID',
      what: 'The token with this id, as in the audit log.',
      check: one =>
        /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(one)
          ? []
          : ['is not a token id, such as 8f14e45f-ceea-467f-a8b5-5c2b9f0a6d1e'],
    },
    user: { type: 'list', value: 'NAME', what: 'Tokens of this user.' },
    group: { type: 'list', value: 'NAME', what: 'Tokens with this group.' },
    reason: {
      type: 'text',
      value: 'TEXT',
      what: 'Reason, shown to the users of these tokens.',
      default: 'revoked manually',
      mayBeEmpty: true,
    },
  },
  run: async ({ flags, args }, io) => {
    const { key, 'key-uid': uid, jti, user, group, reason } = flags
    if (!key && !uid && !jti && user.length + group.length === 0)
      throw new UsageError(['select the tokens with --key, --key-uid, --jti, --user or --group'])
    if (key && uid) throw new UsageError(['--key cannot be combined with --key-uid'])
    return withService({ flags, args }, io, async resources => {
      const named = key ? (await resources.get(OwnedAccessKey, { namespace: '', name: key })).object : undefined
      const keyUID = uid ?? named?.metadata.uid
      const spec = {
        ...(keyUID ? { keyUID } : {}),
        ...(jti ? { jti } : {}),
        ...(user.length ? { users: user } : {}),
        ...(group.length ? { groups: group } : {}),
        reason,
      }
      const whose = [
        ...(key || uid ? [`of the key ${key ?? uid}`] : []),
        ...(jti ? [`with the id ${jti}`] : []),
        ...user.map(name => `of the user ${name}`),
        ...group.map(name => `with the group ${name}`),
      ].join(', and ')
      await confirm(io, `Revoke all tokens ${whose} issued until now?`, flags.yes)
      const { object } = await resources
        .create(TokenRevocation, '', { spec } as Json)
        .catch(withRevokeHint({ resources }, { key: named, byId: Boolean(jti || uid), users: user }))
      io.out(
        `tokenrevocation/${object.metadata.name} created: tokens ${whose} issued until ${object.spec?.['notBefore']} are no longer valid\n`,
      )
      if (key) io.err(`The key ${key} itself is still valid: platform disable accesskey ${key}\n`)
    })
  },
})

export const tokenRotateKey = defineCommand({
  words: ['token', 'rotate-key'],
  what: 'Sign direct-cluster tokens with a new key. Tokens that are already issued stay valid.',
  examples: [{ what: 'Rotate now', command: 'platform token rotate-key' }],
  flags: service,
  run: ({ flags, args }, io) =>
    withService({ flags, args }, io, async resources => {
      const { object } = await resources.create(SigningKeyRotation, '', {})
      io.out(
        `signing key ${object.status?.['key']} created: it signs new tokens, the old keys stay until their tokens expire\n`,
      )
    }),
})

type ServiceFlags = { readonly kubeconfig: string | undefined; readonly context: string | undefined }
type Invocation = { readonly flags: ServiceFlags; readonly args: readonly string[] }

async function withService(
  { flags, args }: Invocation,
  io: Io,
  work: (resources: Resources) => Promise<void>,
): Promise<number> {
  // PLATFORM_CONTEXT names a sign-in context, never a context of the kubeconfig.
  const isNamed = args.some(one => /^--context(=|$)/.test(one))
  const { resources, close } =
    flags.kubeconfig === undefined
      ? await openSession(io, flags)
      : await byKubeconfig(io, flags.kubeconfig, isNamed ? flags.context : undefined)
  try {
    await work(resources)
    return 0
  } finally {
    close()
  }
}

async function byKubeconfig(io: Io, file: string, context: string | undefined) {
  const bytes = await io.readFile(file)
  try {
    const access = readKubeconfig(bytes, { file, directory: dirname(resolve(file)), context })
    const env = access.proxy ? io.env : proxyEnv(io.env, access.server)
    const { fetch, close } = openTransport(access, { env, now: io.now })
    return { resources: connect({ url: access.server, below: '', fetch }), close }
  } catch (error) {
    throw error instanceof KubeconfigError ? new UsageError(error.problems) : error
  }
}

type RevokeTarget = {
  /** The key of --key. */
  readonly key: Resource | undefined
  /** Whether --jti or --key-uid is set: then the owner is unknown. */
  readonly byId: boolean
  readonly users: readonly string[]
}

/** Without permission to revoke, users can still invalidate the tokens of their own key: adds that to the error. */
const withRevokeHint = (session: Pick<Session, 'resources'>, target: RevokeTarget) => async (error: unknown) => {
  // A scoped key cannot rotate keys either, so the hint would not help.
  if (!(error instanceof ApiError) || error.code !== 403 || isScopeDenial(error)) throw error
  const hint = await hintFor(session, target)
  throw hint === undefined ? error : new ApiError(403, 'Forbidden', `${error.message}; ${hint}`)
}

async function hintFor(
  session: Pick<Session, 'resources'>,
  { key, byId, users }: RevokeTarget,
): Promise<string | undefined> {
  const { username, own } = await keyInUse(session)
  if (key && isOwnedBy(key, username)) {
    const name = key.metadata.name ?? ''
    // A key with a lifetime or a scope cannot rotate itself (D22).
    const isBound = own === name && (key.spec?.['scope'] !== undefined || Boolean(key.spec?.['ttl']))
    return `the key is yours; to invalidate all its tokens: ${isBound ? '' : `platform rotate accesskey ${name} or `}platform delete accesskey ${name}`
  }
  return byId || (username !== undefined && users.includes(username))
    ? 'to invalidate all tokens of your own key: platform rotate accesskey NAME or platform delete accesskey NAME'
    : undefined
}
