// Words of forms and of the YAML editor.

export const editorText = {
  useForm: 'Use the form',
  useYaml: 'Use YAML',
  wouldCreate: 'The server would accept this. Nothing is created yet.',
  wouldSave: 'The server would accept this change. Nothing is saved yet.',
  name: 'Name',
  namespace: 'Namespace',
  key: 'Key',
  value: 'Value',
  item: (list: string, number: number) => `${list} ${number}`,
  changedMeanwhile: 'Somebody has changed the object since you began. Saving keeps their change, or asks you.',
  yourChange: (version: string) => `Your change against version ${version}`,
  conflict: 'Somebody else changed the same fields',
  inConflict: (fields: string, theirs: string) => (
    <>
      In conflict: <code>{fields}</code>. They changed: <code>{theirs}</code>.
    </>
  ),
  otherManagers: (names: string) => (
    <>
      <strong>{names}</strong> also manage fields of this object, and may set them again.
    </>
  ),
  mergeAdvice:
    'On the left is the newest version, on the right your text. Take over what you want to keep, and edit the right side.',
  newest: 'The newest version',
  yourText: 'Your text',
  takeTheirs: 'Take theirs',
  useRight: 'Use the right side',
} as const
