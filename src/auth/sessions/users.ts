// Finds or creates the User of a person who signs in (D63, D65). The identity of a person is (issuer, subject).

import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import { isReservedName } from '../../api/names.ts'
import { type JsonObject, type Ref, type Resource, timestamp } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { identityAnnotation, User, type UserObject, userObjectName } from '../../kinds/user.ts'
import {
  IdentityRecord,
  identityRef,
  UsernameRecord,
  type UsernameSpec,
  usernameRef,
} from '../../kinds/username-record.ts'
import type { SignedIn } from '../oidc/provider.ts'

export interface Users {
  /** The User of an identity, created if it is new. Throws 403 with a reason for people. */
  signIn(person: Person, provider: ProviderOfPerson): Promise<{ readonly username: string }>
}

type Person = Pick<SignedIn, 'issuer' | 'subject' | 'username' | 'preferredUsername' | 'email'>

/** `prefix`: of its usernames. */
type ProviderOfPerson = { readonly name: string; readonly prefix: string }

export type UsersOptions = {
  readonly resources: Resources
  /** A stored object. */
  readonly peek: (kind: Kind, ref: Ref) => Resource | undefined
  /** Whether a key, binding, team, owner or access entry has this username. */
  readonly isUsed: (username: string) => Promise<boolean>
  readonly digest: (text: string) => string
  readonly now: () => number
}

const manager = { fieldManager: 'platform' }
const maxAttempts = 5

export function openUsers(options: UsersOptions): Users {
  return {
    async signIn(person, provider) {
      for (let attempt = 1; ; attempt++)
        try {
          return { username: await signInOnce(options, person, provider) }
        } catch (error) {
          // Another sign-in of the same person, or an administrator, was faster.
          const isRace = error instanceof ApiError && [404, 409, 422].includes(error.code)
          if (!isRace || attempt === maxAttempts) throw error
        }
    },
  }
}

async function signInOnce(options: UsersOptions, person: Person, provider: ProviderOfPerson): Promise<string> {
  const { peek, digest, resources, isUsed } = options
  const known = peek(IdentityRecord, identityRef(person, digest))?.spec?.['username'] as string | undefined
  const username = known ?? person.username
  // The mapping refuses reserved names too. They would give the rights of the server or of a team.
  if (username === '' || isReservedName(username))
    throw refused('ReservedUsername', `the username "${username}" is reserved for the server`)
  const record = peek(UsernameRecord, usernameRef(username, digest))?.spec as UsernameSpec | undefined
  const stored = record?.user?.name === undefined ? undefined : peek(User, { namespace: '', name: record.user.name })
  const user = stored as UserObject | undefined
  const isFree = !record?.identities?.length && (provider.prefix !== '' || (!user && !(await isUsed(username))))
  if (known === undefined && !isFree)
    throw refused(
      'UsernameTaken',
      `the username "${username}" is in use already; an administrator can link it to your account with: platform link user ${quoted(username)} --provider ${provider.name} --subject ${quoted(person.subject)}`,
    )
  if (!user) {
    await create(options, username, person, provider)
    return username
  }
  if (user.spec?.disabled || user.metadata.deletionTimestamp !== undefined)
    throw refused('UserDisabled', `the user "${username}" is disabled; ask an administrator to enable it`)
  const ref = { namespace: '', name: user.metadata.name ?? '' }
  if (known === undefined) {
    const spec = { provider: provider.name, issuer: person.issuer, subject: person.subject }
    await resources.act(User, ref, 'link', { kind: 'UserLink', spec }, manager)
  }
  const shown = shownOf(person)
  const isChanged = Object.entries(shown).some(([field, value]) => user.spec?.[field as keyof typeof shown] !== value)
  if (isChanged) await resources.patch(User, ref, { type: 'merge', body: { spec: shown } }, manager)
  return username
}

/** People choose parts of these words, and administrators paste the command into a shell. */
const quoted = (word: string) => (/^[\w.:@/+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

/** For display only. A provider that sends none keeps the stored ones. */
const shownOf = ({ preferredUsername, email }: Person) => ({
  ...(preferredUsername === undefined ? {} : { displayName: preferredUsername }),
  ...(email === undefined ? {} : { email }),
})

async function create(
  { resources, digest, now }: UsersOptions,
  username: string,
  person: Person,
  { name: provider }: ProviderOfPerson,
): Promise<void> {
  const { issuer, subject } = person
  const identity = JSON.stringify({ provider, issuer, subject, since: timestamp(now()) })
  const object = (name: string): JsonObject => ({
    metadata: { name, annotations: { [identityAnnotation]: identity } },
    spec: { username, ...shownOf(person) },
  })
  const name = userObjectName(username, digest)
  try {
    await resources.create(User, '', object(name), manager)
  } catch (error) {
    // An administrator gave the name to the object of another user.
    if (!(error instanceof ApiError) || error.status.reason !== 'AlreadyExists') throw error
    await resources.create(User, '', object(userObjectName(username, digest, false)), manager)
  }
}

/** The page shows the message to the person. */
const refused = (reason: 'ReservedUsername' | 'UsernameTaken' | 'UserDisabled', message: string) =>
  new ApiError(403, reason, message)
