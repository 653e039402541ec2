// Words of the home page.

import { count } from '../ui/format.ts'
import { text } from './common.ts'

export const homeText = {
  hello: (user: string) => `Hello, ${user}`,
  teams: (teams: readonly string[]) =>
    teams.length ? `You are in ${teams.map(text.team).join(', ')}.` : 'You are in no team yet.',
  notLoaded: 'This part could not be loaded.',
  keys: 'Keys about to expire',
  noKeys: 'No key expires within two weeks.',
  expired: 'expired',
  expires: (when: string) => `expires ${when}`,
  conditions: 'Failed conditions',
  noConditions: 'All conditions are met.',
  denials: 'Recent denials',
  noDenials: 'Nobody was denied anything recently.',
  allDenials: 'All denials, also of lists',
  onlyFirst: (number: number) => `Of each kind, this card shows the first ${count(number)} objects only.`,
  denial: (user: string, verb: string, what: string) => `${user} may not ${verb} ${what}`,
} as const
