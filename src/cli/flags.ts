// Flags that many commands share, so that they are called alike and mean the same. Commands spread them into their own.

import { dnsLabel } from '../api/names.ts'
import { parseLabelSelector } from '../api/selector.ts'
import type { Flags } from '../host/command.ts'
import { shortened } from '../host/sanitize.ts'

/** The rule of the server (D7), in words for people. */
export const namespaceProblems = (name: string): string[] =>
  dnsLabel(name).length ? ['must be letters, digits and -, all small, 63 at most, such as shop-1'] : []

function selectorProblems(text: string): string[] {
  try {
    parseLabelSelector(text)
    return []
  } catch (error) {
    return [`is no selector: ${(error as Error).message.replace(/[^\s"']{65,}/g, shortened)}`]
  }
}

export const contextFlag = {
  context: {
    type: 'text',
    value: 'NAME',
    what: 'Context to use instead of the current one.',
    variable: 'PLATFORM_CONTEXT',
  },
} as const satisfies Flags

export const namespaceFlag = {
  namespace: {
    type: 'text',
    short: 'n',
    value: 'NAMESPACE',
    what: 'Namespace; by default the context’s, else default.',
    check: namespaceProblems,
  },
} as const satisfies Flags

export const projectFlag = {
  project: {
    type: 'text',
    value: 'PROJECT',
    what: 'A secret of this project instead of a shared one.',
    // Its secrets live in the namespace of that name (D30).
    check: one => namespaceProblems(`p-${one}`),
  },
} as const satisfies Flags

export const yesFlag = { yes: { type: 'switch', short: 'y', what: 'Do not ask.' } } as const satisfies Flags

export const headersFlag = {
  'no-headers': { type: 'switch', what: 'Print tables without their first line.' },
} as const satisfies Flags

export const outputFlag = {
  output: {
    type: 'text',
    short: 'o',
    value: 'FORM',
    what: 'How to print.',
    choices: ['table', 'wide', 'json', 'yaml', 'name', 'value'],
  },
} as const satisfies Flags

export const dryRunFlag = {
  'dry-run': {
    type: 'text',
    value: 'server',
    what: 'Ask the server what would happen, and change nothing.',
    choices: ['server'],
  },
} as const satisfies Flags

export type DryRun = { readonly 'dry-run'?: string | undefined }
export const isDryRun = (flags: DryRun): boolean => flags['dry-run'] === 'server'
/** Behind what is said to be done. */
export const dryRunNote = (flags: DryRun) => (isDryRun(flags) ? ' (dry run)' : '')

export const selectorFlags = {
  selector: {
    type: 'text',
    short: 'l',
    value: 'SELECTOR',
    what: 'Only what has these labels, such as tier=front.',
    mayBeEmpty: true,
    check: selectorProblems,
  },
  'all-namespaces': { type: 'switch', short: 'A', what: 'In every namespace.' },
} as const satisfies Flags
