// `platform create team` and `platform team add-user|remove-user|add-group|remove-group`.

import { ApiError } from '../../api/errors.ts'
import { type Command, defineCommand } from '../../host/command.ts'
import { Team } from '../../kinds/team.ts'
import { confirm } from '../confirm.ts'
import { printCreated } from '../create.ts'
import { contextFlag, dryRunFlag, dryRunNote, isDryRun, outputFlag, yesFlag } from '../flags.ts'
import { openSession, type Session } from '../session.ts'
import { teamNameOf } from './resolve-team.ts'

export const createTeam = defineCommand({
  words: ['create', 'team'],
  what: 'Create a team.',
  examples: [
    {
      what: 'With two users and all members of a group',
      command: 'platform create team web --user ada --user grace --group frontend',
    },
  ],
  flags: {
    ...contextFlag,
    output: { ...outputFlag.output, choices: ['table', 'json', 'yaml', 'name'] },
    ...dryRunFlag,
    user: { type: 'list', value: 'USER', what: 'A user of the team.' },
    group: { type: 'list', value: 'GROUP', what: 'A group whose members belong to the team.' },
    'display-name': { type: 'text', value: 'TEXT', what: 'Display name.', mayBeEmpty: true },
  },
  positionals: [{ name: 'NAME', what: 'name of the team' }],
  run: async ({ flags, words: [name = ''] }, io) => {
    const spec = {
      ...(flags['display-name'] ? { displayName: flags['display-name'] } : {}),
      ...(flags.user.length ? { users: [...new Set(flags.user)] } : {}),
      ...(flags.group.length ? { groups: [...new Set(flags.group)] } : {}),
    }
    const session = await openSession(io, flags)
    try {
      const dryRun = isDryRun(flags)
      const { object } = await session.resources.create(
        Team,
        '',
        { metadata: { name }, spec },
        { dryRun, fieldManager: 'platform' },
      )
      printCreated(io, Team, object, { output: flags.output, done: `created${dryRunNote(flags)}` })
      return 0
    } finally {
      session.close()
    }
  },
})

type Change = {
  readonly field: 'users' | 'groups'
  readonly isIn: boolean
  readonly name: string
  readonly dryRun: boolean
  /** Called once, only if there is something to change. */
  readonly agree?: () => Promise<void>
}
const tries = 5

/** Retries on conflict, so that no concurrent change is lost. */
async function change({ resources }: Session, team: string, edit: Change): Promise<boolean> {
  const { field, isIn, name, dryRun, agree } = edit
  const ref = { namespace: '', name: team }
  for (let left = tries; ; left--) {
    const { object } = await resources.get(Team, ref)
    const before = (object.spec?.[field] ?? []) as readonly string[]
    if (before.includes(name) === isIn) return false
    if (left === tries) await agree?.()
    const after = isIn ? [...before, name] : before.filter(one => one !== name)
    const { resourceVersion = '' } = object.metadata
    const body = { metadata: { resourceVersion }, spec: { [field]: after } }
    try {
      await resources.patch(Team, ref, { type: 'merge', body }, { fieldManager: 'platform', dryRun })
      return true
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409 || left <= 1) throw error
    }
  }
}

function member(word: string, what: string, { field, isIn }: Pick<Change, 'field' | 'isIn'>): Command {
  const one = field === 'users' ? 'ada' : 'frontend'
  const sort = field === 'users' ? 'user' : 'group'
  return defineCommand({
    words: ['team', word],
    what,
    ...(isIn ? {} : { asksBefore: `removes a ${sort}` }),
    examples: [{ command: `platform team ${word} web ${one}` }],
    flags: { ...contextFlag, ...dryRunFlag, ...(isIn ? {} : yesFlag) },
    positionals: [
      { name: 'TEAM', what: 'the team' },
      { name: 'NAME', what: `the ${sort}` },
    ],
    run: async ({ flags, words: [given = '', name = ''] }, io) => {
      const session = await openSession(io, flags)
      try {
        const dryRun = isDryRun(flags)
        const team = await teamNameOf(session, given)
        const isSure = isIn || dryRun || flags.yes === true
        const agree = () => confirm(io, `Remove the ${sort} ${name} from team/${team} on ${session.server}?`, isSure)
        const isChanged = await change(session, team, { field, isIn, name, dryRun, agree })
        io.out(
          `team/${team} ${isChanged ? `changed${dryRunNote(flags)}` : `unchanged: ${name} ${isIn ? 'is already a member' : 'is not a member'}`}\n`,
        )
        return 0
      } finally {
        session.close()
      }
    },
  })
}

export const addUser = member('add-user', 'Add a user to a team.', { field: 'users', isIn: true })
export const removeUser = member('remove-user', 'Remove a user from a team.', { field: 'users', isIn: false })
export const addGroup = member('add-group', 'Add a group to a team.', { field: 'groups', isIn: true })
export const removeGroup = member('remove-group', 'Remove a group from a team.', { field: 'groups', isIn: false })
