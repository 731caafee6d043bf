/**
 * Implements `make check-imports`. If dependency-cruiser cannot read TypeScript, it finds no module and reports
 * success. So this also checks that it read every source file and found imports.
 */
import { cruiseImports } from './cruise-imports.ts'

/** The numbers may only fall; the goal is 0. */
const MAX_CIRCLES_OF_FILES = 2
const MAX_CIRCLES_OF_FOLDERS = 5

const { moduleCount, importCount, violations, unseen, circles } = await cruiseImports(process.cwd())

for (const { rule, from, to } of violations) console.error(`${rule}: ${from} imports ${to}`)
for (const file of unseen) console.error(`not seen: ${file}`)
if (importCount === 0) console.error('no import was seen')

const { files, folders } = circles
const isRounder = files.length > MAX_CIRCLES_OF_FILES || folders.length > MAX_CIRCLES_OF_FOLDERS
console.log(
  `${files.length} circles of files, types included (${files.flat().length} files; at most ${MAX_CIRCLES_OF_FILES} circles), ` +
    `${folders.length} of folders, by values (${folders.flat().length} folders; at most ${MAX_CIRCLES_OF_FOLDERS})`,
)
if (isRounder) for (const circle of [...files, ...folders]) console.error(`circle: ${circle.join(' ')}`)

if (violations.length + unseen.length > 0 || importCount === 0 || isRounder) process.exit(1)
console.log(`${moduleCount} modules and ${importCount} imports keep the import rules`)
