// `platform can-i`, `why` and `who-can`: asks the server's authorizer about permissions.

import { didYouMean } from '../../api/did-you-mean.ts'
import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { JsonObject } from '../../api/object.ts'
import { defineCommand, type Given, type Io } from '../../host/command.ts'
import { plain, quoted } from '../../host/sanitize.ts'
import { SelfSubjectAccessReview } from '../../kinds/self-reviews.ts'
import { AccessExplanation } from '../../kinds/subject-reviews.ts'
import { contextFlag, namespaceFlag, outputFlag, projectFlag } from '../flags.ts'
import { paint, printJson } from '../print.ts'
import { anyKind } from '../resolve-kind.ts'
import { namespaceFor } from '../resolve-namespace.ts'
import { isScopeDenial } from '../scope-denied.ts'
import { openSession, type Session } from '../session.ts'
import { objectNamesOf } from '../teams/resolve-team.ts'
import { reviewSelf } from './review-self.ts'

const flags = {
  ...contextFlag,
  ...namespaceFlag,
  ...projectFlag,
  output: { ...outputFlag.output, choices: ['json', 'yaml'] },
} as const
const positionals = [
  { name: 'VERB', what: 'such as get, list, create, update, delete' },
  { name: 'RESOURCE', what: 'a kind such as teams, or teams/permissions, or a path such as /metrics' },
  { name: 'NAME', what: 'one object; default: all objects', optional: true },
]

type Question = {
  readonly given: Given<typeof flags>
  readonly io: Io
  readonly more?: JsonObject
  readonly kind: Kind
}

const verbs = 'get list watch create update patch delete deletecollection impersonate escalate bind *'.split(' ')
const pathVerbs = 'get head post put patch delete options *'.split(' ')

/** Returns the status of the review. */
async function answer({ given, io, more = {}, kind }: Question): Promise<JsonObject> {
  const [verb = '', resource = '', ...object] = given.words
  const known = resource.startsWith('/') ? pathVerbs : verbs
  const meant = didYouMean(verb, known)
  // AccessExplanation reports unknown verbs itself.
  if (!known.includes(verb) && (meant || kind === SelfSubjectAccessReview))
    io.err(`platform: warning: ${quoted(verb)} is not a verb of this API, although a role may contain it${meant}\n`)
  const session = await openSession(io, given.flags)
  try {
    const spec = resource.startsWith('/')
      ? { nonResourceAttributes: { verb, path: resource } }
      : { resourceAttributes: { verb, ...(await target(session, given.flags, [resource, ...object])) } }
    const { object: review } = await session.resources.create(kind, '', { spec: { ...spec, ...more } })
    return review.status ?? {}
  } catch (error) {
    if (!isScopeDenial(error)) throw error
    const { keyName } = await reviewSelf(session.resources)
    const why = `the scope of access key "${keyName}" does not cover this question`
    throw new ApiError(403, 'Forbidden', `${why}: use a key without a scope, or platform can-i`)
  } finally {
    session.close()
  }
}

async function target(
  session: Session,
  given: Given<typeof flags>['flags'],
  [word = '', ...object]: readonly string[],
): Promise<JsonObject> {
  const [resource = '', subresource] = word.split('/')
  const kind = anyKind(resource, given.project)
  const namespace = namespaceFor(kind, given, session.namespace)
  const [name] = await objectNamesOf(session, kind, object)
  return {
    group: kind.group,
    resource: kind.plural,
    ...(subresource ? { subresource } : {}),
    ...(namespace ? { namespace } : {}),
    ...(name ? { name } : {}),
  }
}

export const canI = defineCommand({
  words: ['can-i'],
  what: 'Check whether you may do something: exit code 0 yes, 1 no.',
  examples: [
    { what: 'Before a script tries', command: 'platform can-i update team web' },
    { what: 'In a project', command: 'platform can-i get secrets --project shop' },
  ],
  flags,
  positionals,
  run: async (given, io) => {
    const status = await answer({ given, io, kind: SelfSubjectAccessReview })
    const allowed = status['allowed'] === true
    if (given.flags.output) printJson(io, status, given.flags.output)
    else {
      io.out(`${allowed ? paint(io, 'green', 'yes') : paint(io, 'red', 'no')}\n`)
      if (status['reason']) io.err(`${plain(String(status['reason']))}\n`)
    }
    return allowed ? 0 : 1
  },
})

export const why = defineCommand({
  words: ['why'],
  what: 'Explain why you may or may not do something: exit code 0 yes, 1 no.',
  examples: [
    { what: 'After a 403', command: 'platform why delete team web' },
    { what: 'About another user', command: 'platform why delete team web --user ada' },
  ],
  flags: { ...flags, user: { type: 'text', value: 'USER', what: 'Ask about this user instead.' } },
  positionals,
  run: async (given, io) => {
    const { user } = given.flags
    const status = await answer({ given, io, kind: AccessExplanation, ...(user ? { more: { user } } : {}) })
    const allowed = status['allowed'] === true
    if (given.flags.output) printJson(io, status, given.flags.output)
    else {
      const verdict = allowed ? paint(io, 'green', 'allowed') : paint(io, 'red', 'denied')
      io.out(`${verdict}${status['reason'] ? `: ${plain(String(status['reason']))}` : ''}\n`)
      for (const step of texts(status['steps'])) io.out(`  ${step}\n`)
      for (const near of texts(status['nearMisses'])) io.out(`  near: ${near}\n`)
    }
    return allowed ? 0 : 1
  },
})

export const whoCan = defineCommand({
  words: ['who-can'],
  what: 'List who may do something, and which binding allows it.',
  examples: [{ what: 'Who can change the team web', command: 'platform who-can update team web' }],
  flags,
  positionals,
  run: async (given, io) => {
    const status = await answer({ given, io, kind: AccessExplanation, more: { whoCan: true } })
    if (given.flags.output) printJson(io, status, given.flags.output)
    else for (const who of texts(status['who'])) io.out(`${who}\n`)
    return 0
  },
})

const texts = (value: unknown): string[] => (Array.isArray(value) ? value.map(one => plain(String(one))) : [])
