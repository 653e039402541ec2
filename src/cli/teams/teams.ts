// `platform create team` and `platform team add-user|remove-user|add-group|remove-group`.

import { ApiError } from '../../api/errors.ts'
import { type Command, defineCommand } from '../../host/command.ts'
import { Team } from '../../kinds/team.ts'
import { confirm } from '../confirm.ts'
import { printMade } from '../create.ts'
import { contextFlag, dryRunFlag, dryRunNote, isDryRun, outputFlag, yesFlag } from '../flags.ts'
import { openSession, type Session } from '../session.ts'

export const createTeam = defineCommand({
  words: ['create', 'team'],
  what: 'Make a team.',
  examples: [
    {
      what: 'With two people and everyone of a group',
      command: 'platform create team web --user ada --user grace --group frontend',
    },
  ],
  flags: {
    ...contextFlag,
    output: { ...outputFlag.output, choices: ['table', 'json', 'yaml', 'name'] },
    ...dryRunFlag,
    user: { type: 'list', value: 'USER', what: 'A user who belongs to it.' },
    group: { type: 'list', value: 'GROUP', what: 'A group whose members belong to it.' },
    'display-name': { type: 'text', value: 'TEXT', what: 'Name shown to people.', mayBeEmpty: true },
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
      printMade(io, Team, object, { output: flags.output, done: `created${dryRunNote(flags)}` })
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
  /** Called once, when it is known that there is something to change. */
  readonly agree?: () => Promise<void>
}
const tries = 5

/** Read, change, write, and again where somebody else was faster: nobody else's change is lost. */
async function change({ resources }: Session, team: string, asked: Change): Promise<boolean> {
  const { field, isIn, name, dryRun, agree } = asked
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
    ...(isIn ? {} : { asksBefore: `takes a ${sort} out` }),
    examples: [{ what, command: `platform team ${word} web ${one}` }],
    flags: { ...contextFlag, ...dryRunFlag, ...(isIn ? {} : yesFlag) },
    positionals: [
      { name: 'TEAM', what: 'the team' },
      { name: 'NAME', what: `the ${sort}` },
    ],
    run: async ({ flags, words: [team = '', name = ''] }, io) => {
      const session = await openSession(io, flags)
      try {
        const dryRun = isDryRun(flags)
        const isSure = isIn || dryRun || flags.yes === true
        const agree = () => confirm(io, `Take the ${sort} ${name} out of team/${team} on ${session.server}?`, isSure)
        const isChanged = await change(session, team, { field, isIn, name, dryRun, agree })
        io.out(
          `team/${team} ${isChanged ? `changed${dryRunNote(flags)}` : `unchanged: ${name} ${isIn ? 'was in it' : 'was not in it'}`}\n`,
        )
        return 0
      } finally {
        session.close()
      }
    },
  })
}

export const addUser = member('add-user', 'Add a user to a team.', { field: 'users', isIn: true })
export const removeUser = member('remove-user', 'Take a user out of a team.', { field: 'users', isIn: false })
export const addGroup = member('add-group', 'Add a group to a team.', { field: 'groups', isIn: true })
export const removeGroup = member('remove-group', 'Take a group out of a team.', { field: 'groups', isIn: false })
