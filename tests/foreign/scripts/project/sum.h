extern const int table[5];
int sum(const int* numbers, int count);
const char* text(void);
