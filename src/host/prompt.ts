// Prompts for a line at the terminal, with or without echo.

import { once } from 'node:events'
import type { Io } from './command.ts'

/** Input typed before its prompt. */
let ahead = ''

/** Uses raw mode even with echo, so that input typed ahead is not lost between two prompts. */
export const ask: NonNullable<Io['ask']> = async (question, how) => {
  const { stdin, stderr } = process
  // Disable the terminal's echo before printing the prompt.
  stdin.setRawMode(true)
  stderr.write(question)
  stdin.resume()
  let line: string[] = []
  const show = (text: string) => void (how === 'hidden' || stderr.write(text))
  const erase = (count: number) => {
    show('\b \b'.repeat(Math.min(count, line.length)))
    line = line.slice(0, Math.max(0, line.length - count))
  }
  try {
    for (;;) {
      const typed = [...ahead]
      for (const [at, character] of typed.entries()) {
        if (character === '\r' || character === '\n') {
          ahead = typed.slice(at + 1).join('')
          return line.join('')
        }
        // Ctrl-C, or Ctrl-D on an empty line.
        if (character === '\x03' || (character === '\x04' && !line.length)) leave()
        else if (character === '\x7f' || character === '\b') erase(1)
        else if (character === '\x15') erase(line.length)
        else if (character >= ' ') {
          line.push(character)
          show(character)
        }
      }
      const [chunk] = (await once(stdin, 'data')) as [Buffer | string]
      ahead = chunk.toString()
    }
  } finally {
    stdin.setRawMode(false)
    stdin.pause()
    stderr.write('\n')
  }
}

function leave(): never {
  process.stdin.setRawMode(false)
  process.stderr.write('\n')
  process.exit(130)
}
