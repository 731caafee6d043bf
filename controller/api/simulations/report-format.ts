/** In which form a result is wanted. */
export const REPORT_FORMATS = ['json', 'csv', 'html'] as const
export type ReportFormat = (typeof REPORT_FORMATS)[number]

export const REPORT_TYPES: Readonly<Record<ReportFormat, string>> = {
  json: 'application/json; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  html: 'text/html; charset=utf-8',
}

const FORMATS: Readonly<Record<string, ReportFormat>> = {
  'application/json': 'json',
  'application/*': 'json',
  '*/*': 'json',
  'text/csv': 'csv',
  'text/html': 'html',
}

/** The one that an Accept header likes best, the first of several; JSON where it likes none of them. */
export function preferredFormat(accept: string | undefined): ReportFormat {
  let best: { readonly format: ReportFormat; readonly quality: number } = { format: 'json', quality: 0 }
  for (const part of (accept ?? '').split(',')) {
    const [type = '', ...parameters] = part.split(';').map((each) => each.trim().toLowerCase())
    const format = Object.hasOwn(FORMATS, type) ? FORMATS[type] : undefined
    const quality = Number(parameters.find((each) => each.startsWith('q='))?.slice(2) ?? 1)
    if (format !== undefined && quality > best.quality) best = { format, quality }
  }
  return best.format
}
