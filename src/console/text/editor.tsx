// Words of forms and of the YAML editor.

import { counted } from './plural.ts'

export const editorText = {
  useForm: 'Use the form',
  useYaml: 'Use YAML',
  wouldCreate: 'The server would accept this. Nothing is created yet.',
  wouldSave: 'The server would accept this change. Nothing is saved yet.',
  name: 'Name',
  namespace: 'Namespace',
  key: 'Key',
  keyExists: 'This key exists already.',
  value: 'Value',
  item: (list: string, number: number) => `${list} ${number}`,
  createdAgain:
    'Somebody has deleted the object and created it again since you began. Copy what you need, and discard your changes.',
  changedMeanwhile: 'Somebody has changed the object since you began. Saving keeps their change, or asks you.',
  yourChange: (version: string) => `Your change against version ${version}`,
  conflict: 'Somebody else changed the same fields',
  inConflict: (fields: string, theirs: string) => (
    <>
      In conflict: <code>{fields}</code>. They changed: <code>{theirs}</code>.
    </>
  ),
  managers: 'Who manages which fields',
  thisConsole: 'this console',
  unnamed: 'without a name',
  applied: 'Applied',
  updated: 'Updated',
  moreFields: (number: number) => `and ${counted(number, 'more field', 'more fields')}`,
  affectsApplier: (manager: string, fields: string) => (
    <>
      <strong>{manager}</strong> applies <code>{fields}</code>. It may undo your change, or its next apply reports a
      conflict.
    </>
  ),
  affectsUpdater: (manager: string, fields: string) => (
    <>
      <strong>{manager}</strong> has set <code>{fields}</code>, and may do so again.
    </>
  ),
  mergeAdvice:
    'On the left is the newest version, on the right the same with your change. Take over what you want to keep, and edit the right side.',
  newest: 'The newest version',
  yourText: 'With your change',
  takeTheirs: 'Take theirs',
  useRight: 'Use the right side',
} as const
