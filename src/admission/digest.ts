// Computes the SHA-256 of an access key in hex, under which it is stored (D13).

import { hash } from 'node:crypto'

export const digest = (text: string): string => hash('sha256', text, 'hex')
