/**
 * uPlot for embedding in a report, from its package, with its licence; null where the package is not
 * installed.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { ChartLibrary } from '../../simulator/report/html/page.ts'

export function chartLibrary(): ChartLibrary | null {
  try {
    const root = dirname(createRequire(import.meta.url).resolve('uplot/package.json'))
    const text = (name: string): string => readFileSync(join(root, name), 'utf8').replaceAll('\r\n', '\n')
    const licence = text('LICENSE').replaceAll('*/', '* /').trim()
    return {
      script: `/*\n${licence}\n*/\n${text('dist/uPlot.iife.min.js')}`,
      style: text('dist/uPlot.min.css'),
    }
  } catch {
    // The static charts are in the page anyway.
    return null
  }
}
