/** Namespaces of Kubernetes (RFC 1123, a label): they go into keys, files and command lines. */
export const projectNameRule = 'at most 63 lower-case letters, digits and "-", a letter or digit at both ends';

export const isProjectName = (text: string): boolean => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text);

/** Of this project every other uses something; it is privileged until a person says otherwise. */
export const privilegedProject = "default";
