// One small SVG chart per figure: the result as a bar, the baseline below it, the target as a line. record-files.ts writes it.

import { type Figure, isMet, told, toldWanted } from './measurement.ts'

/** Readable on light and dark pages, because an image does not know its background. */
export const colours = { text: '#77818c', met: '#3a85d8', short: '#cf6a1d', bare: '#77818c', wanted: '#77818c' }

const width = 400
const left = 10
/** The numbers are in a column after the longest bar. */
const longest = 190
const bar = 14

export function chartOf(figure: Figure): string {
  const { name, value, bare, wanted } = figure
  const most = Math.max(value, wanted ?? 0, bare?.value ?? 0) || 1
  const length = (size: number) => Math.round((Math.max(0, size) / most) * longest)
  const rows = [
    { size: value, label: told(value, figure), colour: isMet(figure) === false ? colours.short : colours.met },
    ...(bare ? [{ size: bare.value, label: toldBare(bare, figure), colour: colours.bare }] : []),
  ]
  const top = 24
  const bottom = top + rows.length * (bar + 6)
  const height = bottom + (wanted === undefined ? 4 : 18)
  const lines = rows.flatMap(({ size, label, colour }, row) => {
    const y = top + row * (bar + 6)
    return [
      `<rect x="${left}" y="${y}" width="${Math.max(1, length(size))}" height="${bar}" fill="${colour}"/>`,
      text(left + longest + 8, y + 11, label),
    ]
  })
  const at = left + length(wanted ?? 0)
  const limit = `<path d="M${at} ${top - 4}V${bottom}" stroke="${colours.wanted}" stroke-width="2" stroke-dasharray="3 2"/>`
  const verdict = { true: 'met', false: 'falls short', undefined: '' }[`${isMet(figure)}`]
  const foot = `wanted ${toldWanted(figure)}: ${verdict}`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(`${name}: ${told(value, figure)}${wanted === undefined ? '' : `, ${foot}`}`)}</title>`,
    `<g font-family="sans-serif" font-size="11" fill="${colours.text}">`,
    text(left, 14, name, ' font-weight="bold"'),
    ...lines,
    ...(wanted === undefined ? [] : [limit, text(left, bottom + 12, foot)]),
    '</g>',
    '</svg>',
    '',
  ].join('\n')
}

/** The baseline of a ratio is 1, so its name is enough. */
const toldBare = ({ name, value }: NonNullable<Figure['bare']>, figure: Figure) =>
  value === 1 ? name : `${name} ${told(value, figure)}`

const text = (x: number, y: number, words: string, more = '') =>
  `<text x="${x}" y="${y}"${more}>${escaped(words)}</text>`

const escaped = (words: string) =>
  words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
