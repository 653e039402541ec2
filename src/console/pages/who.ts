// Reads the lines of a who-can answer: `group platform:team:web by spec.access[0] of the object`.

import { text } from '../text/common.ts'

type Who = { readonly who: string; readonly by: string }

function whoOf(line: string): Who {
  const at = line.lastIndexOf(' by ')
  const [subject, by] = at === -1 ? [line, ''] : [line.slice(0, at), line.slice(at + 4)]
  const team = /^(?:group|user) platform:team:(.+)$/.exec(subject)?.[1]
  return { who: team === undefined ? subject : text.team(team), by }
}

/** Who, and through what. */
export const factsOf = (lines: readonly string[] = []): readonly (readonly [who: string, by: string])[] =>
  lines.map(whoOf).map(({ who, by }) => [who, by && text.through(by)])
