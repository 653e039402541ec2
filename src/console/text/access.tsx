// Words of the pages about permissions, and of the tabs of a team.

import { counted } from './plural.ts'

export const accessText = {
  isHidden: 'You may not see who can. You can ask about yourself.',
  questions: { get: 'Who can read it', update: 'Who can change it', delete: 'Who can delete it' },
  whoCanDo: (verb: string, what: string) => `Who can ${verb} ${what}?`,
  mayDo: (user: string, verb: string, what: string) => `May ${user} ${verb} ${what}?`,
  about: 'Asked through the same evaluator that answers requests.',
  user: 'User',
  emptyIsYou: 'empty: you',
  verb: 'Verb',
  resource: 'Resource',
  namespace: 'Namespace',
  name: 'Name',
  emptyIsAny: 'empty: any',
  askWhy: 'Ask why',
  whoCan: 'Who can',
  answer: 'Answer',
  yes: 'Yes',
  no: 'No',
  nearMisses: 'Near misses',
  steps: 'How the answer came about',
  remedy: 'What would allow it',
  addAccess: (verb: string, who: string, object: string) => (
    <>
      Add <code>{verb}</code> for {who} or a team of theirs to <code>spec.access</code> of <code>{object}</code>.
    </>
  ),
  bindRole: (verb: string, who: string, resource: string) => (
    <>
      Bind a role with the verb <code>{verb}</code> on <code>{resource}</code> to {who} or to a team of theirs.
    </>
  ),
  subjects: (number: number) => counted(number, 'user or group', 'users and groups'),
  noMembers: 'No members yet',
  noMembersAdvice: 'A user joins by name or by a group of the provider.',
  members: (number: number) => counted(number, 'member', 'members'),
  joinedThrough: 'Joined through',
  noPermissions: 'No role is bound to this team',
  noPermissionsAdvice: (group: string) =>
    `Bind a role to the group ${group}. This page does not list objects that are shared with the team: see the tab Access of the object.`,
  teamMay: 'What the team may do',
} as const
