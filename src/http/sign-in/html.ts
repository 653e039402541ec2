// HTML with every value escaped: a template tag, so that no page can forget it.

/** Markup that needs no escaping. Only `html` makes it. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Value = string | number | Html | readonly Html[] | undefined | false

const entities: { readonly [character: string]: string } = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Attribute values must be in double quotes. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  let text = parts[0] ?? ''
  for (const [index, value] of values.entries()) text += markup(value) + (parts[index + 1] ?? '')
  return new Html(text)
}

function markup(value: Value): string {
  if (value === undefined || value === false) return ''
  if (value instanceof Html) return value.text
  if (typeof value === 'object') return value.map(one => one.text).join('')
  return String(value).replace(/[&<>"']/g, character => entities[character] ?? '')
}
