// Handles the `link` subresource of users: lets an account at an identity provider sign in as the user (D65).

import type { SubresourceHandler } from '../api/admission.ts'
import { type FieldError, forbidden, invalid, invalidValue, required } from '../api/errors.ts'
import { isObject, type Json, type Resource, timestamp } from '../api/object.ts'
import { User, type UserIdentity, type UserObject } from '../kinds/user.ts'
import { isSameIdentity } from '../kinds/username-record.ts'
import { identitiesOf, identityTaken, type RecordDependencies } from './user-records.ts'

export type LinkDependencies = Pick<RecordDependencies, 'now' | 'usernameOf'> & {
  /** The issuer of a configured provider. */
  readonly issuerOf: (provider: string) => string | undefined
}

/** The gate checks the permissions: linking grants everything that the username holds. */
export const linkUser =
  ({ now, usernameOf, issuerOf }: LinkDependencies): SubresourceHandler<UserObject> =>
  async (user, { body }, { caller }) => {
    const { name = '' } = user.metadata
    // The link would outlive the permission to impersonate, as a key would (D62).
    if (caller.impersonator !== undefined)
      throw forbidden(User, name, 'identities cannot be linked while impersonating')
    const { identity, errors } = readBody(body, issuerOf)
    if (errors.length) throw invalid({ group: User.group, kind: 'UserLink' }, name, errors)
    if (identitiesOf(user).some(one => isSameIdentity(one, identity))) return { object: user as Resource }
    const holder = usernameOf(identity)
    if (holder !== undefined && holder !== user.spec?.username) throw identityTaken(name)
    const identities = [...identitiesOf(user), { ...identity, since: timestamp(now()) }]
    return { object: { ...user, status: { ...user.status, identities } } as unknown as Resource }
  }

type Read = { readonly identity: UserIdentity; readonly errors: readonly FieldError[] }

const maxLength = 2048

function readBody(body: Json = {}, issuerOf: LinkDependencies['issuerOf']): Read {
  const spec = isObject(body) ? (body.spec ?? {}) : body
  if (!isObject(spec)) return { identity: {}, errors: [invalidValue('spec', spec, 'must be an object')] }
  const errors: FieldError[] = []
  const read = (field: string): string => {
    const value = spec[field] ?? ''
    const isText = typeof value === 'string' && value.length <= maxLength
    if (!isText) errors.push(invalidValue(`spec.${field}`, value, `must be text of at most ${maxLength} characters`))
    return isText ? value : ''
  }
  const [provider, given, subject] = [read('provider'), read('issuer'), read('subject')]
  const issuer = given || (issuerOf(provider) ?? '')
  if (provider === '') errors.push(required('spec.provider', 'name of the identity provider'))
  else if (issuer === '')
    errors.push(
      invalidValue(
        'spec.provider',
        provider,
        'this provider is not configured; set spec.issuer to the URL of its issuer',
      ),
    )
  if (subject === '') errors.push(required('spec.subject', 'subject of the person at the issuer'))
  return { identity: { provider, issuer, subject }, errors }
}
