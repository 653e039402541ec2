// Reads the lines of a who-can answer: `group platform:team:web by spec.access[0] of the object`.

import { text } from '../text/common.ts'

export type Who = { readonly who: string; readonly by: string; readonly team?: string }

export function whoOf(line: string): Who {
  const at = line.indexOf(' by ')
  const [subject, by] = at === -1 ? [line, ''] : [line.slice(0, at), line.slice(at + 4)]
  const team = /^(?:group|user) platform:team:(.+)$/.exec(subject)?.[1]
  return team === undefined ? { who: subject, by } : { who: text.team(team), by, team }
}
