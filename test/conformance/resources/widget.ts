// A kind for tests: namespaced, with every list type, a deprecated field and nothing hidden, so that stored bytes are sent as they are.

import { defineKind } from '../../../src/api/kind.ts'
import { flag, integer, list, longText, mapList, mapOf, setOf, struct, text } from '../../../src/api/schema.ts'

export const Widget = defineKind({
  kind: 'Widget',
  plural: 'widgets',
  singular: 'widget',
  shortNames: ['wd'],
  categories: ['all'],
  namespaced: true,
  description: 'Widget is a thing that tests make.',
  spec: struct('Desired state of the widget.', {
    size: integer('How large it is.', { minimum: 0 }),
    note: longText('A description of the widget.'),
    ready: flag('Whether it may be used.'),
    old: text('Nobody uses this any more.', { deprecated: true }),
    tags: setOf(text(''), 'Words for it.'),
    parts: mapList(
      struct('A part.', { name: text('Its name.'), count: integer('How many.') }, ['name']),
      ['name'],
      'The parts of the widget.',
    ),
    settings: mapOf(text(''), 'How it behaves.'),
    steps: list(text(''), 'In which order.'),
  }),
  status: struct('Observed state of the widget.', { phase: text('How far it is.') }),
  statusSubresource: true,
  columns: [
    { name: 'Size', type: 'integer', description: 'How large it is.', value: o => o.spec?.size as number },
    { name: 'Note', type: 'string', description: 'A note.', priority: 1, value: o => o.spec?.note as string },
  ],
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'Widget',
    metadata: { name: 'sample', namespace: 'default' },
    spec: { size: 3, note: 'small', tags: ['red'] },
  },
})
