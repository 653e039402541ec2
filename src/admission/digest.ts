// SHA-256 in hex: access keys are stored and found by it (D13).

import { hash } from 'node:crypto'

export const digest = (text: string): string => hash('sha256', text, 'hex')
