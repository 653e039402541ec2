// `platform share secret`: gives users and teams access to one secret, and takes it away (D26).

import { ApiError } from '../../api/errors.ts'
import type { JsonObject, Resource } from '../../api/object.ts'
import { defineCommand, UsageError } from '../../host/command.ts'
import { confirm } from '../confirm.ts'
import { dryRunFlag, dryRunNote, isDryRun, yesFlag } from '../flags.ts'
import { locationText } from '../resolve-namespace.ts'
import { openSession, type Session } from '../session.ts'
import { requireTeam, teamNameOf } from '../teams/resolve-team.ts'
import { secretFlags, secretKind, secretRef, type Where } from './secret.ts'

type Entry = {
  readonly name?: string
  readonly verbs?: readonly string[]
  readonly users?: readonly string[]
  readonly teams?: readonly string[]
}
type Recipient = { readonly field: 'users' | 'teams'; readonly name: string }

/** The entries that this command manages, by name. It leaves all other entries as they are. */
const managed: { readonly [name: string]: readonly string[] } = {
  readers: ['get'],
  writers: ['get', 'update', 'patch'],
}

export const shareSecret = defineCommand({
  words: ['share', 'secret'],
  what: 'Let users and teams read a secret, or also write it.',
  asksBefore: 'removes access',
  examples: [
    { what: 'A team may read it', command: 'platform share secret db --team web' },
    { what: 'A user may read and write it', command: 'platform share secret db --user ada --write' },
    { what: 'Undo', command: 'platform share secret db --team web --remove' },
    { what: 'A secret of a project', command: 'platform share secret app --project shop --team web' },
  ],
  flags: {
    ...secretFlags,
    user: { type: 'list', value: 'USER', what: 'A user to share the secret with.' },
    team: { type: 'list', value: 'TEAM', what: 'A team to share the secret with.' },
    write: { type: 'switch', what: 'Also let them change the secret.' },
    remove: { type: 'switch', what: 'Take the access away.' },
    ...dryRunFlag,
    ...yesFlag,
  },
  positionals: [{ name: 'NAME', what: 'the secret' }],
  run: async ({ flags, words: [name = ''] }, io) => {
    if (!flags.user.length && !flags.team.length)
      throw new UsageError(['--user USER or --team TEAM is missing: who gets access'])
    if (flags.remove && flags.write) throw new UsageError(['--remove cannot be combined with --write'])
    const session = await openSession(io, flags)
    try {
      const dryRun = isDryRun(flags)
      const what = `${secretKind(flags).singular}/${name}`
      const recipients = await recipientsOf(session, flags)
      const who = listed(recipients.map(recipientText))
      const at = locationText(session, secretRef(session, name, flags).namespace)
      const agree = () => confirm(io, `Stop sharing ${what}${at} with ${who}?`, flags.yes || dryRun)
      const { isChanged, access } = await change(session, name, {
        where: flags,
        dryRun,
        edit: flags.remove ? without(recipients) : withRecipients(recipients, flags.write),
        ...(flags.remove ? { agree } : {}),
      })
      if (flags.remove) {
        const done = isChanged
          ? `no longer shared with ${who}${dryRunNote(flags)}`
          : `unchanged: not shared with ${who}`
        io.out(`${what} ${done}\n`)
        for (const warning of remaining(access, recipients)) io.err(`platform: warning: ${warning}\n`)
        return 0
      }
      const rights = recipients.every(one => holds(access, 'writers', one)) ? 'read and write' : 'read'
      if (isChanged) {
        io.out(`${what} shared${dryRunNote(flags)}: ${who} may ${rights} it\n`)
        if (!dryRun) io.out(`Undo: platform share secret ${name} ${flagsText(recipients, flags)} --remove\n`)
      } else io.out(`${what} unchanged: ${who} may already ${rights} it\n`)
      return 0
    } finally {
      session.close()
    }
  },
})

type RecipientFlags = {
  readonly user: readonly string[]
  readonly team: readonly string[]
  readonly remove: boolean
}

/** Access entries hold the names of teams, also where a flag has a username. A deleted team can still be removed. */
async function recipientsOf(session: Session, { user, team, remove }: RecipientFlags): Promise<readonly Recipient[]> {
  const teams = new Set<string>()
  for (const one of new Set(team)) teams.add(await (remove ? teamNameOf : requireTeam)(session, one))
  return [
    ...[...new Set(user)].map(name => ({ field: 'users', name }) as const),
    ...[...teams].map(name => ({ field: 'teams', name }) as const),
  ]
}

const recipientText = ({ field, name }: Recipient) => `${field === 'users' ? 'user' : 'team'} ${name}`

const listed = (texts: readonly string[]) =>
  texts.length > 1 ? `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}` : String(texts[0])

const flagsText = (recipients: readonly Recipient[], { project, namespace }: Where) =>
  [
    ...recipients.map(({ field, name }) => `--${field === 'users' ? 'user' : 'team'} ${name}`),
    ...(project === undefined ? [] : [`--project ${project}`]),
    ...(namespace === undefined ? [] : [`-n ${namespace}`]),
  ].join(' ')

const isManaged = ({ name = '', verbs = [] }: Entry) =>
  Object.hasOwn(managed, name) && managed[name]?.join() === verbs.join()

const names = (entry: Entry, { field, name }: Recipient) => entry[field]?.includes(name) === true

const holds = (access: readonly Entry[], name: string, recipient: Recipient) =>
  access.some(entry => isManaged(entry) && entry.name === name && names(entry, recipient))

type Edit = (access: readonly Entry[]) => readonly Entry[]

/** A writer can also read, so nobody is in both entries. */
const withRecipients =
  (recipients: readonly Recipient[], isWrite: boolean): Edit =>
  access => {
    const target = isWrite ? 'writers' : 'readers'
    const added = recipients.filter(one => !holds(access, 'writers', one) && !holds(access, target, one))
    if (!added.length) return access
    const others = without(isWrite ? added : [])(access)
    const found = others.find(entry => isManaged(entry) && entry.name === target)
    const base: Entry = found ?? { name: target, verbs: managed[target] ?? [] }
    const namesOf = (field: Recipient['field']) => [
      ...(base[field] ?? []),
      ...added.filter(one => one.field === field).map(({ name }) => name),
    ]
    const [users, teams] = [namesOf('users'), namesOf('teams')]
    const entry = { ...base, ...(users.length ? { users } : {}), ...(teams.length ? { teams } : {}) }
    return found ? others.map(one => (one === found ? entry : one)) : [...others, entry]
  }

/** Removes entries that grant nothing to anybody afterwards. */
const without =
  (recipients: readonly Recipient[]): Edit =>
  access =>
    access.flatMap(entry => {
      if (!isManaged(entry) || !recipients.some(one => names(entry, one))) return [entry]
      const rest = (field: Recipient['field']) =>
        entry[field]?.filter(name => !recipients.some(one => one.field === field && one.name === name)) ?? []
      const { users: _, teams: __, ...kept } = entry
      const [users, teams] = [rest('users'), rest('teams')]
      if (!users.length && !teams.length) return []
      return [{ ...kept, ...(users.length ? { users } : {}), ...(teams.length ? { teams } : {}) }]
    })

function remaining(access: readonly Entry[], recipients: readonly Recipient[]): string[] {
  return access.flatMap((entry, index) =>
    recipients
      .filter(one => names(entry, one))
      .map(one => `${recipientText(one)} still has access through spec.access[${index}]; change it with kubectl edit`),
  )
}

type Change = {
  readonly where: Where
  readonly dryRun: boolean
  readonly edit: Edit
  /** Called once, only if there is something to change. */
  readonly agree?: () => Promise<void>
}
const tries = 5

/** Retries on conflict, so that no concurrent change is lost. */
async function change({ resources, ...session }: Session, name: string, { where, dryRun, edit, agree }: Change) {
  const [kind, ref] = [secretKind(where), secretRef({ resources, ...session }, name, where)]
  for (let left = tries; ; left--) {
    const { object } = await resources.get(kind, ref)
    const before = accessOf(object)
    const access = edit(before)
    if (JSON.stringify(access) === JSON.stringify(before)) return { isChanged: false, access }
    if (left === tries) await agree?.()
    const { resourceVersion = '' } = object.metadata
    const body = { metadata: { resourceVersion }, spec: { access } } as unknown as JsonObject
    try {
      await resources.patch(kind, ref, { type: 'merge', body }, { fieldManager: 'platform', dryRun })
      return { isChanged: true, access }
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409 || left <= 1) throw error
    }
  }
}

const accessOf = ({ spec }: Resource) => (spec?.['access'] ?? []) as unknown as readonly Entry[]
