// Checks prose against the style guide: forbidden phrases, clauses without an actor, and sentence length.

/** A stretch of prose and the line of the file it starts on. It may span several lines. */
export type Piece = readonly [line: number, text: string]

/** Extracts the prose of a file. Add one of these to check comments or messages too. */
export type Extract = (text: string) => Piece[]

export type Problem = { readonly line: number; readonly problem: string }

const longest = 35

/** A space in a pattern matches any white space, because prose wraps. */
const phrases: readonly (readonly [pattern: string, instead: string])[] = [
  ['counts? no (?:more|longer)', 'is no longer valid'],
  ['told', 'name the actor: "the server reports…", "the log shows…"'],
  ['(?:is|are|was|were|be|been|being) asked', 'name the actor: "the gateway queries…", "the command prompts…"'],
  ['heard', 'receives, is reachable, has synced'],
  ['judg(?:e|es|ed|ing|e?ment)', 'checks, evaluates, authorizes'],
  ['who(?:m)?ever', 'name the actor: "users who…", "a client that…"'],
  ['nobody is surprised', 'Not implemented yet: …'],
  ['lost ground', 'revoked permissions'],
  ['house', 'the server, the process'],
  ['(?:room|door|hallway)s?', 'module, directory, listener; free space for disks'],
  ['floors|(?:ground|lower|upper) floor', 'layer, minimum'],
  ['leads? to no', 'is not configured'],
  ['what was there before', 'the previous configuration, the existing objects'],
  ['go(?:es)? on(?! the| a| an)', 'continues, keeps running'],
  ['(?<!there )(?:is|are|was|were) no(?! (?:longer|more than|less than|fewer))', 'is not a'],
  ['anew', 'again'],
  ['(?:is|are|was|were) away', 'is unreachable'],
  ['held against', 'compared with, tested against'],
  ['put right', 'corrected, reverted'],
  ['is to (?:stand|be)', 'must be'],
  ["is (?:an? |the )?\\w+['’]s(?=[.;:,])", 'only administrators can…'],
  ['for who', 'for callers that…'],
  ['nobody can be asked', 'without a terminal'],
  ['for ever', 'forever'],
  ['(?:is|are|was|were) made(?! of| by| up)', 'created, issued'],
  ['is not guessed', 'is ambiguous'],
]
const forbidden = phrases.map(([pattern, instead]) => ({
  pattern: new RegExp(`(?<![\\w-])(?:${pattern.replaceAll(' ', '\\s+')})(?![\\w-])`, 'i'),
  instead,
}))
/** A clause as subject hides who acts. Questions and "What to do" are fine. */
const headless = /^(?:What|Who|Where)\s(?!to\b)[^?]*\.$/

export function problemsIn(pieces: readonly Piece[]): Problem[] {
  return pieces.flatMap(([line, text]) =>
    sentencesIn(text).flatMap(sentence => {
      const at = (index: number) => line + newlinesIn(text.slice(0, sentence.index + index))
      const found = forbidden.flatMap(({ pattern, instead }) => {
        const match = pattern.exec(sentence.text)
        return match ? [{ line: at(match.index), problem: `"${oneLine(match[0])}" (instead: ${instead})` }] : []
      })
      const words = sentence.text.split(/\s+/).filter(word => /[\p{L}\p{N}]/u.test(word)).length
      const start = oneLine(sentence.text).slice(0, 50).trimEnd()
      if (headless.test(oneLine(sentence.text)))
        found.push({ line: at(0), problem: `"${start}…": start with the actor, not with a clause` })
      if (words > longest)
        found.push({ line: at(0), problem: `"${start}…": ${words} words in a sentence, at most ${longest}` })
      return found
    }),
  )
}

const newlinesIn = (text: string) => text.split('\n').length - 1
const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim()

/** A sentence ends at . ! or ? before white space, unless it is an abbreviation. */
function sentencesIn(text: string): { readonly index: number; readonly text: string }[] {
  return [...text.matchAll(/\S[\s\S]*?(?:(?<!\b(?:e\.g|i\.e|vs))[.!?][)"”*_]*(?=\s|$)|$)/g)].map(match => ({
    index: match.index,
    text: match[0],
  }))
}

/** Paragraphs, list items, headings and table cells. Code, link targets and HTML comments are not prose. */
export const markdownProse: Extract = text => {
  const pieces: [number, string][] = []
  let open: [number, string] | undefined
  for (const [index, line] of blanked(text).split('\n').entries()) {
    const isItem = /^\s*(?:[-*]|\d+\.)\s/.test(line)
    if (!line.trim() || isItem || /^(?:#|\|)/.test(line)) open = undefined
    if (line.startsWith('|')) for (const cell of line.split('|')) pieces.push([index + 1, cell])
    else if (open) open[1] += `\n${line}`
    else if (line.trim()) {
      const piece: [number, string] = [index + 1, line.replace(/^\s*(?:[-*]|\d+\.|#+)\s+/, '')]
      pieces.push(piece)
      if (!line.startsWith('#')) open = piece
    }
  }
  return pieces
}

/** Removes fenced blocks and comments but keeps their line breaks; inline code becomes one word. */
function blanked(markdown: string): string {
  const breaks = (block: string) => block.replace(/[^\n]/g, '')
  return markdown
    .replace(/^```[\s\S]*?^```/gm, breaks)
    .replace(/<!--[\s\S]*?-->/g, breaks)
    .replace(/``[^`]+``|`[^`]+`/g, code => `code${breaks(code)}`)
    .replace(/\]\([^)\s]+\)/g, ']')
    .replaceAll('\\|', '')
}

/** Comments, and the texts of four words and more: messages, help and the names of tests. */
export const codeProse: Extract = text => {
  const pieces: [number, string][] = []
  let comment: [number, string] | undefined
  for (const match of text.matchAll(tokens)) {
    const [token] = match
    const line = newlinesIn(text.slice(0, match.index)) + 1
    if (token.startsWith('//')) {
      const words = token.replace(/^\/\/ ?/, '')
      const isNext = comment !== undefined && comment[0] + newlinesIn(comment[1]) + 1 === line
      if (isNext && comment) comment[1] += `\n${words}`
      else {
        comment = [line, words]
        pieces.push(comment)
      }
    } else if (token.startsWith('/*'))
      pieces.push([line, token.replace(/^\/\*+ ?|\s*\*+\/$/g, '').replace(/^\s*\* ?/gm, '')])
    else {
      const words = token.slice(1, -1).replace(/\$\{[^}]*\}/g, 'value')
      if (/^[^\n]*[a-z]+ [a-z]+ [a-z’']+ [a-z]/i.test(words)) pieces.push([line, words])
    }
  }
  return pieces.map(([line, words]) => [line, blanked(words)])
}

/** A regular expression looks like a division. One with a quote may hide a string. */
const tokens = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`/g
