// Flags that several commands share.

import { dnsLabel } from '../api/names.ts'
import { parseLabelSelector } from '../api/selector.ts'
import type { Flags } from '../host/command.ts'
import { shortened } from '../host/sanitize.ts'

/** The server's rule (D7), worded for the command line. */
export const namespaceProblems = (name: string): string[] =>
  dnsLabel(name).length ? ['must be lower-case letters, digits and -, at most 63 characters, such as shop-1'] : []

function selectorProblems(text: string): string[] {
  try {
    parseLabelSelector(text)
    return []
  } catch (error) {
    return [`is not a valid selector: ${(error as Error).message.replace(/[^\s"']{65,}/g, shortened)}`]
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
    what: 'Namespace. Default: the namespace of the context, else "default".',
    check: namespaceProblems,
  },
} as const satisfies Flags

export const projectFlag = {
  project: {
    type: 'text',
    value: 'PROJECT',
    what: 'Use the secret of this project instead of a global secret (SharedSecret).',
    // Secrets of project X are in namespace p-X (D30).
    check: one => namespaceProblems(`p-${one}`),
  },
} as const satisfies Flags

export const yesFlag = { yes: { type: 'switch', short: 'y', what: 'Skip the confirmation.' } } as const satisfies Flags

export const headersFlag = {
  'no-headers': { type: 'switch', what: 'Print tables without a header.' },
} as const satisfies Flags

export const outputFlag = {
  output: {
    type: 'text',
    short: 'o',
    value: 'FORMAT',
    what: 'Output format.',
    choices: ['table', 'wide', 'json', 'yaml', 'name', 'value'],
  },
} as const satisfies Flags

export const dryRunFlag = {
  'dry-run': {
    type: 'text',
    value: 'server',
    what: 'Validate on the server without changing anything.',
    choices: ['server'],
  },
} as const satisfies Flags

export type DryRun = { readonly 'dry-run'?: string | undefined }
export const isDryRun = (flags: DryRun): boolean => flags['dry-run'] === 'server'
/** Follows the result in an output line. */
export const dryRunNote = (flags: DryRun) => (isDryRun(flags) ? ' (dry run)' : '')

export const selectorFlags = {
  selector: {
    type: 'text',
    short: 'l',
    value: 'SELECTOR',
    what: 'Only objects with these labels, such as tier=front.',
    mayBeEmpty: true,
    check: selectorProblems,
  },
  'all-namespaces': { type: 'switch', short: 'A', what: 'In every namespace.' },
} as const satisfies Flags
