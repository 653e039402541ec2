// One client: chooses a request, sends it, and records the response. traffic.ts runs many of them on the same few names.

import type { LeanAnswer, LeanClient } from './lean-client.ts'
import { sightOf, type Team, teams, teamText } from './observed-teams.ts'
import type { List, Sight, Write } from './recording.ts'
import type { Dice } from './seeded-random.ts'
import type { Tape } from './traffic.ts'

const names = Array.from({ length: 40 }, (_, index) => `n${String(index).padStart(2, '0')}`)
const merge = 'application/merge-patch+json'
const none: LeanAnswer = { code: 0, text: '', isLast: true }

type Sent = Omit<Write, 'start' | 'end' | 'code' | 'seen' | 'uid'>

export function openClient(client: LeanClient, tape: Tape, id: number, roll: Dice) {
  let count = 0
  const pick = () => names[roll(names.length)] as string
  const value = () => `${id}-${count++}`
  const color = () => (roll(2) ? 'red' : 'blue')
  const ask: typeof client.ask = (...request) => client.ask(...request).catch(() => none)

  function note(text: string): Sight {
    const seen = sightOf(JSON.parse(text) as Team)
    if (seen.version > (tape.known.get(seen.name)?.version ?? 0))
      tape.known.set(seen.name, { version: seen.version, text })
    tape.newest = Math.max(tape.newest, seen.version)
    return seen
  }

  async function write(sent: Sent, method: string, body?: string, type?: string): Promise<Write> {
    const start = tape.tick()
    const path = sent.op === 'create' ? teams : `${teams}/${sent.name}`
    const { code, text } = await ask(method, sent.dryRun ? `${path}?dryRun=All` : path, body, type)
    const answer = { ...sent, code, start, end: tape.tick() }
    const done: Write = code < 200 || code >= 300 ? answer : { ...answer, ...seenBy(sent, text) }
    tape.writes.push(done)
    return done
  }

  function seenBy(sent: Sent, text: string): Pick<Write, 'seen' | 'uid'> {
    if (sent.dryRun) return {}
    if (sent.op !== 'delete') return { seen: note(text) }
    tape.known.delete(sent.name)
    return { uid: (JSON.parse(text) as { details: { uid: string } }).details.uid }
  }

  const create = (name: string, tint: string, dryRun = false) => {
    const text = value()
    return write({ op: 'create', name, value: text, color: tint, dryRun }, 'POST', teamText(name, text, tint))
  }

  /** Some reads accept older state. */
  const ofAnyVersion = () => (tape.oldest && roll(8) === 0 ? { since: tape.oldest() } : undefined)

  async function get(): Promise<number> {
    const name = pick()
    const since = ofAnyVersion()
    const start = tape.tick()
    const { code, text } = await ask('GET', `${teams}/${name}${since ? '?resourceVersion=0' : ''}`)
    const answer = { name, code, start, end: tape.tick(), ...since }
    tape.gets.push(code === 200 ? { ...answer, seen: note(text) } : answer)
    return 1
  }

  /** The pages of one list, in order. Sometimes it stops early. */
  async function list(): Promise<number> {
    const tint = roll(3) === 0 ? color() : undefined
    const limit = roll(4) === 0 ? undefined : 5 + roll(15)
    const exact = roll(8) === 0 && tape.lists.length ? (tape.lists.at(-1) as List).at : undefined
    const fixed = `${tint ? `labelSelector=color%3D${tint}&` : ''}${limit ? `limit=${limit}&` : ''}`
    const since = exact === undefined && limit === undefined ? ofAnyVersion() : undefined
    const version = since
      ? 'resourceVersion=0'
      : exact === undefined
        ? ''
        : `resourceVersion=${exact}&resourceVersionMatch=Exact`
    let from: { token: string; after: string; began: number } | undefined
    for (let pages = 1; ; pages++) {
      const start = tape.tick()
      const { code, text } = await ask('GET', `${teams}?${fixed}${from ? `continue=${from.token}` : version}`)
      if (code !== 200) {
        const asked = from?.began ?? exact
        tape.gets.push({ name: 'a list', code, start, end: tape.tick(), ...(asked === undefined ? {} : { asked }) })
        return pages
      }
      const { items, metadata } = JSON.parse(text) as {
        items: Team[]
        metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number }
      }
      const at = Number(metadata.resourceVersion)
      const { continue: token, remainingItemCount: remaining } = metadata
      tape.lists.push({
        start,
        end: tape.tick(),
        ...since,
        at,
        items: items.map(sightOf),
        ...(tint ? { color: tint } : {}),
        ...(limit ? { limit } : {}),
        ...(from ? { after: from.after, began: from.began } : exact === undefined ? {} : { exact }),
        more: token !== undefined,
        ...(remaining === undefined ? {} : { remaining }),
      })
      const last = items.at(-1)
      if (!token || !last || roll(6) === 0) return pages
      from = { token, after: last.metadata.name, began: from?.began ?? at }
    }
  }

  async function change(): Promise<number> {
    const name = pick()
    const known = tape.known.get(name)
    const kind = roll(100)
    const dryRun = roll(25) === 0
    if (!known) {
      await create(name, color(), dryRun)
      return 1
    }
    const text = value()
    const tint = color()
    // Sometimes a version that is certainly old.
    const expect = roll(12) === 0 ? known.version - 1 : known.version
    if (kind < 35)
      await write(
        { op: 'update', name, value: text, color: tint, expect, dryRun },
        'PUT',
        teamText(name, text, tint, expect),
      )
    else if (kind < 42) await write({ op: 'same', name, expect: known.version }, 'PUT', known.text)
    else if (kind < 60)
      await write({ op: 'patch', name, value: text, dryRun }, 'PATCH', `{"spec":{"description":"${text}"}}`, merge)
    else if (kind < 72)
      await write(
        { op: 'relabel', name, color: tint },
        'PATCH',
        `{"metadata":{"labels":{"color":"${tint}","mark":"${text}"}}}`,
        merge,
      )
    else if (kind < 80) await create(name, tint)
    else if (kind < 90) await write({ op: 'delete', name, dryRun }, 'DELETE')
    else
      await write({ op: 'delete', name, expect, dryRun }, 'DELETE', `{"preconditions":{"resourceVersion":"${expect}"}}`)
    return 1
  }

  return {
    /** Sends one request, or the pages of one list; returns the number of requests. */
    next(): Promise<number> {
      const kind = roll(100)
      return kind < 66 ? get() : kind < 72 ? list() : change()
    },
    /** Returns the version. */
    create: async (name: string, tint: string) => (await create(name, tint)).seen?.version ?? 0,
    close: client.close,
  }
}
