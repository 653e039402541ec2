// Finds the User object of a username, or creates it.

import { hash } from 'node:crypto'
import type { Resource } from '../../api/object.ts'
import { User, userObjectName } from '../../kinds/user.ts'
import { selectField } from '../select-field.ts'
import type { Session } from '../session.ts'

export async function findUser({ resources }: Session, username: string): Promise<Resource | undefined> {
  const { items } = await resources.list(User, { fieldSelector: selectField('spec.username', username) })
  return items[0]?.object
}

const digest = (text: string) => hash('sha256', text, 'hex')

type CreateOptions = { readonly dryRun: boolean; readonly disabled?: boolean }

export async function createUser(
  { resources }: Session,
  username: string,
  { dryRun, disabled }: CreateOptions,
): Promise<Resource> {
  const spec = { username, ...(disabled ? { disabled } : {}) }
  const body = { metadata: { name: userObjectName(username, digest) }, spec }
  return (await resources.create(User, '', body, { fieldManager: 'platform', dryRun })).object
}
