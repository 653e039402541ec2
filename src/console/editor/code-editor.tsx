// A code editor (CodeMirror) for YAML and expressions, with the colours of the theme.

import { autocompletion, type CompletionSource, completionKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { type Diagnostic, linter, lintGutter } from '@codemirror/lint'
import { Annotation, Compartment, EditorState, type Extension, StateEffect, StateField } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  GutterMarker,
  gutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'
import { shownText } from '../ui/jsx-runtime.ts'

const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? ''

export const editorTheme: Extension = [
  EditorView.cspNonce.of(nonce),
  // Characters that reorder text are shown as signs. The default leaves some of them out.
  highlightSpecialChars({ addSpecialChars: /[\u202A-\u202C\u2068]/g }),
  EditorView.theme({
    '&': { backgroundColor: 'var(--panel)', color: 'var(--text)', fontSize: '12.5px' },
    '&.cm-focused': { outline: '2px solid var(--accent)' },
    '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '20px' },
    '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--faint)', border: 'none' },
    '.cm-notes': { padding: '0 8px', maxWidth: '18ch', fontFamily: 'var(--sans)' },
    '.cm-notes .cm-gutterElement': { overflow: 'hidden', textOverflow: 'ellipsis', whiteSpace: 'nowrap' },
    // The text needs the width of a phone.
    '@media (width < 700px)': { '.cm-gutters-after': { display: 'none' } },
    '.cm-activeLine': { backgroundColor: 'var(--accent-soft)' },
    '.cm-cursor': { borderLeftColor: 'var(--text)' },
    '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
      backgroundColor: 'var(--accent-soft)',
    },
    '.cm-tooltip': { backgroundColor: 'var(--panel)', border: '1px solid var(--line-strong)', color: 'var(--text)' },
    '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--on-accent)' },
    '.cm-changedLine, .cm-insertedLine': { backgroundColor: 'var(--ok-soft) !important' },
    '.cm-deletedChunk, .cm-deletedLine': { backgroundColor: 'var(--bad-soft) !important' },
  }),
  syntaxHighlighting(
    HighlightStyle.define([
      { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
      { tag: [tags.string, tags.special(tags.string)], color: 'var(--ok)' },
      { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--warn)' },
      { tag: tags.comment, color: 'var(--faint)' },
    ]),
  ),
]

/** Notes beside lines, by line number. */
type Notes = (text: string) => ReadonlyMap<number, readonly string[]>

class LineNote extends GutterMarker {
  readonly text: string
  constructor(text: string) {
    super()
    this.text = text
  }
  override eq(other: LineNote): boolean {
    return other.text === this.text
  }
  override toDOM(): Node {
    return document.createTextNode(shownText(this.text))
  }
}

/** Marks a text that came from `value`. It is not an edit of the user. */
const isGiven = Annotation.define<true>()

/** A browser that replaces a selection keeps its colour as an inline style, which the content security policy reports. */
const replaceSelection = EditorView.domEventHandlers({
  beforeinput(event, { state, dispatch }) {
    if (event.inputType !== 'insertText' || event.data === null || state.readOnly || state.selection.main.empty) return
    event.preventDefault()
    dispatch(state.update(state.replaceSelection(event.data), { userEvent: 'input.type', scrollIntoView: true }))
  },
})

/** For other notes of the same text. */
const notesChanged = StateEffect.define()

/** A column at the end of the lines. Screen readers skip it, so the page must show the notes elsewhere as well. */
function notesGutter(notesOf: Notes): Extension {
  const notes = StateField.define({
    create: state => notesOf(state.doc.toString()),
    update: (shown, change) =>
      change.docChanged || change.effects.some(effect => effect.is(notesChanged))
        ? notesOf(change.state.doc.toString())
        : shown,
  })
  const column = gutter({
    class: 'cm-notes',
    side: 'after',
    lineMarker: ({ state }, { from }) => {
      const found = state.field(notes).get(state.doc.lineAt(from).number)
      return found ? new LineNote(found.join(', ')) : null
    },
    lineMarkerChange: ({ startState, state }) => startState.field(notes) !== state.field(notes),
  })
  return [notes, column]
}

type CodeEditorProps = {
  readonly label: string
  readonly value: string
  readonly onChange?: (value: string) => void
  readonly problems?: (text: string) => readonly Diagnostic[]
  readonly complete?: CompletionSource
  readonly language?: Extension
  readonly notes?: Notes
}

/** The text belongs to the user: `value` replaces it only if the editor did not report it. It may lag behind several reports. */
export function CodeEditor({ label, value, onChange, problems, complete, language = yaml(), notes }: CodeEditorProps) {
  const place = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const latest = useRef({ onChange, problems, notes })
  latest.current = { onChange, problems, notes }
  const reported = useRef([value])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the editor is made once
  useEffect(() => {
    if (!place.current) return
    const editor = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: value,
        extensions: [
          editorTheme,
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          replaceSelection,
          keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
          new Compartment().of(language),
          EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
          EditorState.readOnly.of(!onChange),
          ...(problems
            ? [lintGutter(), linter(({ state }) => latest.current.problems?.(state.doc.toString()) ?? [])]
            : []),
          ...(notes ? [notesGutter(text => latest.current.notes?.(text) ?? new Map())] : []),
          ...(complete ? [autocompletion({ override: [complete] })] : []),
          EditorView.updateListener.of(update => {
            if (!update.docChanged || update.transactions.some(one => one.annotation(isGiven))) return
            const text = update.state.doc.toString()
            reported.current.push(text)
            latest.current.onChange?.(text)
          }),
        ],
      }),
    })
    view.current = editor
    return () => editor.destroy()
  }, [])
  useEffect(() => {
    const editor = view.current
    if (!editor) return
    const at = reported.current.indexOf(value)
    reported.current = at === -1 ? [value] : reported.current.slice(at)
    if (at !== -1) return
    const changes = { from: 0, to: editor.state.doc.length, insert: value }
    editor.dispatch({ changes, annotations: isGiven.of(true) })
  }, [value])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the editor reads the latest notes
  useEffect(() => view.current?.dispatch({ effects: notesChanged.of(null) }), [notes])
  return <div ref={place} />
}
