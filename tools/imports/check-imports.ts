/**
 * Implements `make check-imports`. If dependency-cruiser cannot read TypeScript, it finds no module and
 * reports success. So this also checks that it read every source file and found imports.
 */
import { cruiseImports } from './cruise-imports.ts'

const { moduleCount, importCount, violations, unseen, circles } = await cruiseImports(process.cwd())

for (const { rule, from, to } of violations) console.error(`${rule}: ${from} imports ${to}`)
for (const file of unseen) console.error(`not seen: ${file}`)
if (importCount === 0) console.error('no import was seen')

for (const circle of circles.files) console.error(`circle of files: ${circle.join(' ')}`)
for (const circle of circles.folders) console.error(`circle of folders: ${circle.join(' ')}`)

const errors = violations.length + unseen.length + circles.files.length + circles.folders.length
if (errors > 0 || importCount === 0) process.exit(1)
console.log(
  `${moduleCount} modules and ${importCount} imports keep the import rules, without a circle of ` +
    'files or folders',
)
