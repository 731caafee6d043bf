export const OUTPUT_FORMATS = ['table', 'wide', 'json', 'jsonl', 'yaml'] as const
export type OutputFormat = (typeof OUTPUT_FORMATS)[number]
