"""The suite: what is right and what is wrong, kind by kind.

A row is (gold, answer, right). The answer is put into a box, unless it begins with "RAW ", then it is a whole response.
Made from the conventions in docs/grading.md; every kind has both directions. None of it comes from a data set.
"""

Row = tuple[str, str, bool]

CASES: dict[str, list[Row]] = {}

CASES["extraction"] = [
    ("7", r"RAW First \boxed{5}, no: \boxed{7}", True),
    ("5", r"RAW First \boxed{5}, no: \boxed{7}", False),
    ("5", r"RAW \boxed{5}. Check: \boxed{5", True),
    ("7", r"RAW We get \boxed{7}. The final answer is $5$.", True),
    ("5", r"RAW We get \boxed{7}. The final answer is $5$.", False),
    ("3", r"RAW The answer is 4. So \boxed{3}", True),
    ("4", r"RAW The answer is 4. So \boxed{3}", False),
    (r"\frac{1}{2}", r"RAW Thus \boxed{\dfrac{1}{2}}.", True),
    (r"\frac{1}{2}", r"RAW Thus \fbox{\frac12}.", True),
    ("7", r"RAW $$\boxed{\boxed{7}}$$", True),
    ("7", r"RAW $$\boxed{x = \boxed{7}}$$", True),
    ("12", r"RAW \boxed 12", True),
    ("12", r"RAW \boxed{ 12 }", True),
    ("12", "RAW \\boxed{\n12\n}", True),
    ("12", r"RAW \boxed{$12$}", True),
    ("12", r"RAW \boxed{\(12\)}", True),
    ("12", "RAW The answer is 12.", True),
    ("12", "RAW the answer is $12$", True),
    ("12", "RAW So the final answer is: **12**", True),
    ("12", "RAW **Answer:** 12", True),
    ("12", "RAW Answer: 12", True),
    ("12", "RAW ANSWER: 12.", True),
    ("12", "RAW Final Answer: 12", True),
    ("12", "RAW The correct answer is therefore 12, because 3 times 4 is 12.", True),
    ("12", "RAW 3 * 4 = 12\n#### 12", True),
    ("1234", "RAW so\n#### 1,234", True),
    ("12", "RAW Final Answer: The final answer is $12$. I hope it is correct.", True),
    (r"\frac{3}{4}", r"RAW Final Answer: The final answer is $\frac{3}{4}$. I hope it is correct.", True),
    ("3.5", "RAW The answer is 3.5. Done.", True),
    ("12", "RAW The answer is 11. Wait, I was wrong. The answer is 12.", True),
    ("11", "RAW The answer is 11. Wait, I was wrong. The answer is 12.", False),
    ("12", "RAW So we have 3 * 4 = 12", False),
    ("12", "RAW Therefore 12 apples remain.", False),
    ("12", "RAW The value of x must be 12", False),
    ("12", "RAW 12", False),
    ("12", "RAW ", False),
    ("12", r"RAW \boxed{}", False),
    ("12", r"RAW \boxed{12} so the box is \boxed{}", False),
    ("12", r"RAW \boxed{ }", False),
    ("12", r"RAW \boxed{12", False),
    ("C", "RAW The answer is (C).", True),
    ("C", "RAW The answer is C", True),
    ("B", "RAW The answer is (C).", False),
    ("12", "RAW The answer is 7 or 12.", False),
    ("12", "RAW The answer is not 12.", False),
    ("(1,2)", "RAW The answer is $(1, 2)$.", True),
    (r"\{1,2\}", r"RAW \boxed{\{1, 2\}}", True),
    (r"\{1,2\}", r"RAW \boxed{\left\{1, 2\right\}}", True),
    ("12", r"RAW The box \boxed{12} holds it. I also like 13.", True),
    ("13", r"RAW Let $N = 13$. Then \boxed{12}. Answer: 13", False),
]

CASES["numbers"] = [
    ("25", "025", True), ("025", "25", True), ("27.0", "27", True), ("27", "27.0", True), ("27", "27.", True),
    ("5", "5.00", True), ("-3", "−3", True), ("-3", "-3", True), ("3", "-3", False), ("3", "+3", True),
    ("70", "70.5", False), ("204", "240", False), ("1000", "1,000", True), ("1,000", "1000", True),
    ("10080", r"10,\!080", True), (r"10,\!080", "10080", True), ("10080", "10{,}080", True), ("10080", "10 080", True),
    ("10080", r"10\,080", True), ("1234567", "1,234,567", True), ("1234567", "1,234,576", False), ("1000", "100", False),
    ("0.5", ".5", True), (".5", "0.50", True), ("0.5", r"\frac{1}{2}", True), (r"\frac{1}{2}", "0.5", True),
    (r"\frac{1}{2}", "1/2", True), (r"\frac{1}{2}", r"\frac12", True), (r"\frac{1}{2}", r"\tfrac{1}{2}", True),
    (r"\frac{1}{2}", r"\frac{2}{4}", True), (r"\frac{1}{2}", "½", True), (r"\frac{1}{2}", r"{1 \over 2}", True),
    (r"\frac{1}{2}", r"\frac{1}{3}", False), (r"\frac{1}{2}", "2", False), (r"-\frac{1}{2}", r"\frac{-1}{2}", True),
    (r"-\frac{1}{2}", r"\frac{1}{-2}", True), (r"-\frac{1}{2}", "-0.5", True), (r"-\frac{1}{2}", "0.5", False),
    (r"\frac{9}{5}", r"1\frac{4}{5}", True), (r"1\frac{4}{5}", r"\frac{9}{5}", True), (r"1\frac{4}{5}", "1.8", True),
    (r"137 \frac{1}{2}", "137.5", True), (r"137 \frac{1}{2}", "137 1/2", True), (r"1\frac{4}{5}", r"\frac{4}{5}", False),
    (r"-1\frac{1}{2}", "-1.5", True), (r"2\frac58", "2.625", True), ("0", "-0", True), ("0", "0.0", True),
    ("1", "0.9999999999", False), ("1024", "2^{10}", True), ("1024", "2^10", True), ("1024", "2**10", True),
    ("120", "5!", True), ("120", r"\binom{10}{3}", True), ("12", r"3 \times 4", True), ("12", r"3 \cdot 4", True),
    ("3", r"\sqrt{9}", True), ("-2", r"\sqrt[3]{-8}", True), ("2^{1009}", "2^{1009}", True),
    ("2^{1009}", r"4^{504} \cdot 2", True), ("2^{1009}", "2^{1010}", False), (r"\frac{100!}{2^{50}}", r"\frac{100!}{2^{50}}", True),
    (r"\frac{100!}{2^{50}}", r"\frac{100!}{2^{51}}", False), ("12", "twelve", True), ("21", "twenty-one", True),
    ("12", "eleven", False), ("3", "３", True), ("12", "１２", True), ("7", "7!", False), ("18", "18.0000001", False),
    ("123456789012345678901234567890", "123456789012345678901234567890", True),
    ("123456789012345678901234567890", "123456789012345678901234567891", False),
    ("0.1", "0.10000000000000000001", False), ("1000000", r"10^6", True), ("1000000", "1.0 million", True),
    ("5", r"\textbf{5}", True), ("5", r"\text{5}", True), ("5", r"{5}", True), ("5", r"(5)", True), ("5", r"\mathbf{5}", True),
    ("5", "5.", True), ("5", "5,", True), ("2,900", "2900", True), ("2,900", "2.9", False),
]  # fmt: skip

CASES["repeating"] = [
    (r"\frac{1}{3}", r"0.\overline{3}", True), (r"\frac{1}{6}", r"0.1\overline{6}", True),
    (r"0.\overline{3}", r"\frac{1}{3}", True), (r"\frac{3}{11}", r"0.\overline{27}", True), (r"\frac13", r"0.\bar{3}", True),
    (r"0.\overline{3}", "0.3", False), ("0", r"0.\overline{3}", False), (r"\frac{1}{3}", r"0.\overline{34}", False),
    (r"0.\overline{27}", r"0.\overline{2727}", True), (r"\frac13", r"0.\dot{3}", True),
]  # fmt: skip

CASES["rounding"] = [
    (r"\frac{1}{3}", "0.333", False), (r"\frac{1}{3}", "0.3333333333", False), (r"\sqrt{2}", "1.414", False),
    (r"\sqrt{2}", "1.41421356237", False), (r"\pi", "3.14", False), (r"\pi", "3.14159265358979", False),
    (r"\pi", r"\frac{22}{7}", False), ("3.14", r"\pi", False), ("0.333", r"\frac{1}{3}", False), ("1.6", "1.60", True),
    ("1.6", "1.61", False), ("1.6", "1.62", False), ("4.49", "4.5", False), ("0.033", "0.0333", False), ("41.8", "42", False),
    (r"e^{2}", "7.389", False), (r"\ln 2", "0.693", False), ("2.78", "2.78", True), ("24.310", "24.31", True),
    ("0.10", "0.1", True), ("56.0", "56", True), (r"\frac{2}{3}", "0.67", False), (r"\sqrt{51}", "7.14", False),
    (r"\frac{1+\sqrt{5}}{2}", "1.618", False), ("1.62", r"\frac{1+\sqrt{5}}{2}", False), (r"\sqrt{2}", r"\sqrt{2} \approx 1.414", True),
    (r"10^{-20}", "0", False), (r"10^{-20}", r"2 \times 10^{-20}", False), ("1e-20", "2e-20", False), ("1e-20", "0", False),
    (r"\frac{1}{10^{30}}", "0", False), ("2.26e-10", "2.27e-10", False),
]  # fmt: skip

CASES["scientific"] = [
    ("1.77e-6", r"1.77 \times 10^{-6}", True), ("1.77e-6", r"1.77 \cdot 10^{-6}", True), ("1.77e-6", "1.77E-6", True),
    ("1.77e-6", "1.77×10⁻⁶", True), ("1.77e-6", "0.00000177", True), ("1.77e-6", "1.77e-7", False),
    ("1.77e-6", r"1.77 \times 10^{6}", False), ("1.77e-6", r"17.7 \times 10^{-7}", True), ("3e8", r"3 \times 10^{8}", True),
    ("3e8", "300000000", True), ("3e8", "300,000,000", True), ("3e8", r"3 \times 10^{8} \text{ m/s}", True), ("3e8", "3*10^8", True),
    ("4.5e33", r"4.5 \times 10^{33}", True), ("4.5e33", r"4.5 \times 10^{32}", False), ("4.5e33", r"4.50\times10^{33}", True),
    ("4.5e33", r"4.6 \times 10^{33}", False), ("1e11", "10^{11}", True), ("1.4903e4", "14903", True), ("1e-3", "0.001", True),
    ("1e-3", "-1000", False), ("7.353e14", r"7.353 \times 10^{14} \mathrm{~Hz}", True), ("2.88e-19", r"2.88 \times 10^{-19} \text{ J}", True),
    ("6.5e-2", "0.065", True), ("-1./3", r"-\frac{1}{3}", True), ("-3./2", "-1.5", True), ("3e8", r"2.998 \times 10^8", False),
    ("1.87e6", r"1.87 \times 10^{6}\,\text{m}", True),
]  # fmt: skip

CASES["percent"] = [
    (r"28\%", "28", True), (r"28\%", r"28\%", True), (r"28\%", "28%", True), (r"28\%", "0.28", True), ("28", r"28\%", True),
    ("0.28", r"28\%", True), (r"28\%", "28 percent", True), (r"28\%", r"28 \text{ percent}", True), (r"28\%", "2800", False),
    (r"28\%", "0.0028", False), (r"28\%", "29", False), ("0.28", "28", False), ("28", "0.28", False), ("28", "2800", False),
    (r"62.5\%", "0.625", True), (r"62.5\%", r"\frac{5}{8}", True), ("62.5%", r"62.5\%", True), (r"8 \%", "8", True),
    (r"5.3\%", r"53\%", False), (r"1.1\%", "1.1", True), (r"\frac{1}{2}", r"50\%", True), (r"50\%", r"\frac{1}{2}", True),
    (r"50\%", r"\frac{1}{20}", False), ("33", "0.33", False), ("5", "500", False), ("5", "0.05", False), (r"17.5\%", "17.5", True),
]  # fmt: skip

CASES["degrees"] = [
    (r"90^\circ", "90", True), ("90", r"90^\circ", True), (r"90^\circ", r"90^{\circ}", True), (r"90^\circ", "90°", True),
    (r"90^\circ", "90 degrees", True), (r"90^\circ", r"90 \text{ degrees}", True), (r"90^\circ", "91", False), (r"90^\circ", "9", False),
    (r"\frac{270}7\text{ degrees}", r"\frac{270}{7}", True), (r"\frac{270}7\text{ degrees}", r"\left(\frac{270}{7}\right)^\circ", True),
    (r"18.8^{\circ}", "18.8", True), (r"-120^{\circ}", r"-120^\circ", True), (r"-120^{\circ}", "120", False),
    (r"90^{\circ},60^{\circ}", "60, 90", True), (r"90^{\circ},60^{\circ}", r"60^\circ \text{ and } 90^\circ", True),
    (r"(45^{\circ}, 60^{\circ})", "(45, 60)", True), (r"(45^{\circ}, 60^{\circ})", "(60, 45)", False),
    (r"\frac{1}{2}", r"\cos 60^\circ", True), (r"\frac{1}{2}", r"\sin 60^\circ", False), (r"4^{\circ}", r"4\degree", True),
    (r"45^{\circ}", r"\angle A = 45^\circ", True),
]  # fmt: skip

CASES["currency"] = [
    (r"\$36", "36", True), ("36", r"\$36", True), (r"\$36", r"\$36", True), (r"\$36", "36 dollars", True), (r"\$36", "$36", True),
    (r"\$36", r"36\$", True), (r"\$36", r"\$36.00", True), (r"\$18.90", "18.9", True), (r"\$18.90", r"18.90 \text{ dollars}", True),
    (r"\$18.90", "19", False), (r"\$32,\!348", "32348", True), (r"\$32,\!348", r"\$32,348", True), (r"\$32,\!348", "32.348", False),
    (r"5.4 \text{ cents}", "5.4", True), (r"5.4 \text{ cents}", "5.4¢", True), (r"5.4 \text{ cents}", r"\$5.4", False),
    ("36", "€36", True), ("1.50", r"\$1.50", True), ("5", r"\$5 \text{ per hour}", True), (r"\$36", r"\$63", False),
    ("18", r"\$18", True), ("18", "18 dollars", True), ("1250", r"\text{USD } 1250", True), ("36", r"-\$36", False),
]  # fmt: skip

CASES["units"] = [
    (r"20 cm^{2}", "20", True), (r"20 $cm^{2}$", r"20 \text{ cm}^2", True), (r"22.1cm^{2}", "22.1", True), ("166", r"166 \text{ cm}^2", True),
    (r"15\mbox{ cm}^2", "15", True), (r"15\mbox{ cm}^2", r"15 \text{ square centimeters}", True), (r"15\mbox{ cm}^2", "16", False),
    (r"864 \mbox{ inches}^2", "864", True), (r"864 \mbox{ inches}^2", r"864 \text{ in}^2", True), (r"576\pi\;m^{2}", r"576\pi", True),
    (r"36\sqrt{7}cm^{3}", r"36\sqrt{7}", True), (r"36\sqrt{7}cm^{3}", r"36\sqrt{7} \text{ cm}^3", True), (r"36\sqrt{7}cm^{3}", "36", False),
    ("45", "45 minutes", True), ("45", r"45\text{ min}", True), ("45", "45 apples", True), ("45", r"45 \text{ ways}", True),
    ("8", "8 min", True), (r"\frac{600}{7}", r"\frac{600}{7} \text{ km/h}", True), (r"\frac{41}{12}", r"\frac{41}{12}\text{ km}", True),
    (r"5 \text{ m}", r"5 \text{ km}", False), (r"5 \text{ km}", r"5000 \text{ m}", True), (r"5 \text{ km}", r"500 \text{ m}", False),
    (r"5 \text{ hours}", r"300 \text{ minutes}", True), (r"5 \text{ hours}", r"5 \text{ minutes}", False), ("5", "5 m", True), ("5", "5x", False),
    ("10", r"10 \, \mathrm{m/s^2}", True), ("10", r"10 \text{ m s}^{-2}", True), ("72", r"72 \text{ kg}", True), ("3", "3 feet", True),
    ("3", "3 ft.", True), ("12", r"12 \text{ units}", True), ("12", "12 square units", True), (r"12 \text{ square units}", "12", True),
    ("60", "60 mph", True), ("60", "60 miles per hour", True), (r"6 \text{ inches}", "6 in", True), (r"2\sqrt{3} \text{ cm}", r"2\sqrt{3}", True),
    (r"2\sqrt{3} \text{ cm}", "2 cm", False), ("0.72", r".72 \mathrm{~m}", True), (r"5m", "5n", False), ("2x", "2", False),
    (r"2k", "2", False), ("7", "7 or 8 apples", False), ("7", "between 7 and 8 apples", False), ("7", "5 to 7 apples", False),
    ("12", r"12 \text{ (square units)}", True), ("100", "100 students", True), ("100", r"100\ \Omega", True), (r"(a+5)(b+2)", r"(a+5)(b+2)", True),
    (r"(a+5)^2", r"(+5)^2", False), (r"(a+5)^2", r"(c+5)^2", False), (r"(a+5)^2", "25", False), (r"\frac{37}{4} m", r"\frac{37m}{4}", True),
]  # fmt: skip

CASES["closed forms"] = [
    (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}", True), (r"4\sqrt{2}", r"\sqrt{32}", True), (r"4\sqrt{2}", r"2\sqrt{4}", False),
    (r"\frac{\sqrt{17}}{17}", r"\frac{1}{\sqrt{17}}", True), (r"2-\sqrt{3}", r"-\sqrt{3}+2", True), (r"2-\sqrt{3}", r"\frac{1}{2+\sqrt{3}}", True),
    (r"2-\sqrt{3}", r"2+\sqrt{3}", False), (r"11\sqrt2", r"11\sqrt{2}", True), (r"11\sqrt2", "11√2", True), (r"11\sqrt2", "11sqrt(2)", True),
    (r"11 \sqrt{5} + 11", r"11(\sqrt{5}+1)", True), (r"\frac{3\pi}{10}", r"0.3\pi", True), (r"\frac{3\pi}{10}", "3π/10", True),
    (r"\frac{3\pi}{10}", "3pi/10", True), (r"e^{-1}", r"\frac{1}{e}", True), (r"e^{-1}", "e", False), (r"\ln 2", r"\ln(2)", True),
    (r"\ln 4", r"2\ln 2", True), (r"\ln 4", r"\ln 2", False), (r"\log_2 8", "3", True), (r"\frac{\log 2}{\log 2-\log 3}", r"\frac{\ln 2}{\ln 2-\ln 3}", True),
    (r"2^{-2/3}", r"\frac{1}{\sqrt[3]{4}}", True), (r"5 \sqrt[3]{4}", r"5 \cdot 4^{1/3}", True), (r"\frac{8}{\sqrt[3]{7}}", r"\frac{8\sqrt[3]{49}}{7}", True),
    (r"8(\sqrt[10]{2^{7}})", r"8 \cdot 2^{7/10}", True), (r"\sqrt{113}-\sqrt{65}", r"\sqrt{65}-\sqrt{113}", False), (r"18+2\pi", r"2(\pi+9)", True),
    (r"\frac{20000}{\pi}", r"20000/\pi", True), (r"1024-256\pi", r"256(4-\pi)", True), (r"4\pi^{2}-1", r"(2\pi-1)(2\pi+1)", True),
    (r"\frac{15-8\sqrt{3}}{33}", r"\frac{5}{11}-\frac{8\sqrt{3}}{33}", True), (r"\sqrt{3}", r"3^{1/2}", True), (r"\sqrt{3}", r"3^{0.5}", True),
    (r"C_{400}^{40} \cdot C_{200}^{20}", r"\binom{400}{40}\binom{200}{20}", True), (r"\frac{4 \cdot 999^{4}}{27}", r"148148 \cdot 999^3", False),
    ("np.arcsin(10/13)", r"\arcsin(10/13)", True), ("np.arcsin(10/13)", r"\sin^{-1}\left(\frac{10}{13}\right)", True),
    (r"\frac{7}{27}", r"7 \cdot 3^{-3}", True), (r"\sqrt{2}+\sqrt{3}", r"\sqrt{5+2\sqrt{6}}", True), (r"\sqrt{2}+\sqrt{3}", r"\sqrt{5}", False),
    (r"2+\pi", r"\pi+2", True), (r"\frac{5\pi}{4}\sqrt{17}", r"\frac{5\sqrt{17}\pi}{4}", True), (r"10^{100}", r"10^{99}", False), (r"10^{100}", r"(10^{10})^{10}", True),
    (r"\sin \frac{\pi}{6}", "0.5", True), (r"\arctan 1", r"\frac{\pi}{4}", True), (r"\frac{\pi^2}{6}", r"\left(\frac{\pi}{6}\right)^2", False),
]  # fmt: skip

CASES["expressions"] = [
    ("x^2+2x+1", "(x+1)^2", True), ("x^2+2x+1", "x^2+1+2x", True), ("x^2+2x+1", "(x-1)^2", False), ("2k+2", "2(k+1)", True), ("2k+2", "2k+1", False),
    (r"\frac{n(n+1)}{2}", r"\frac{n^2+n}{2}", True), (r"\frac{n(n+1)}{2}", r"\binom{n+1}{2}", True), (r"\frac{n(n+1)}{2}", r"\frac{n(n-1)}{2}", False),
    ("p - q", "-q+p", True), ("p - q", "q - p", False), (r"\frac{11+9a}{20}", r"\frac{9a+11}{20}", True), (r"\frac{11+9a}{20}", "0.45a+0.55", True),
    ("15x - 80", "5(3x-16)", True), ("6r^2-4r-24", "2(3r^2-2r-12)", True), ("3R^2", "3r^2", False), (r"\cot x", r"\frac{\cos x}{\sin x}", True),
    (r"\cot x", r"\frac{1}{\tan x}", True), (r"\cot x", r"\tan x", False), (r"\sin 2x", r"2\sin x\cos x", True), (r"\sin^2 x", r"1-\cos^2 x", True),
    (r"\sin^2 x", r"\sin x^2", False), (r"e^{t}/3", r"\frac{1}{3}e^t", True), (r"e^{t}/3", r"e^{t/3}", False), (r"\frac{1}{s+a}", r"(s+a)^{-1}", True),
    (r"\frac{1}{s+a}", r"\frac1s+\frac1a", False), (r"2^{k-n}", r"\frac{2^k}{2^n}", True), (r"2^{k-n}", "2^{n-k}", False), (r"n^{2}-n+1", "n(n-1)+1", True),
    (r"\sqrt{x^2}", "x", False), (r"\sqrt{x^2}", "|x|", True), (r"\sqrt[4]{x^2 y^3}", r"x^{1/2}y^{3/4}", True), (r"\ln|x|+C", r"\ln |x| + C", True), (r"\ln|x|+C", r"\ln|x| + c", True),
    (r"\frac{x^2}{2}+C", r"\frac{1}{2}x^2+C", True), (r"\frac{x^2}{2}+C", r"\frac{x^2}{2}", False), (r"\frac{x^2}{2}+C", r"x^2+C", False), (r"\frac{\sin^2 x}{2}+C", r"-\frac{\cos^2 x}{2}+C", True),
    (r"(x-1)e^{x}+C", r"xe^x-e^x+C", True), (r"\binom{2n}{n}", r"\frac{(2n)!}{(n!)^2}", True), (r"\binom{2n}{n}", r"\binom{2n}{n+1}", False), (r"\lceil n/2\rceil+1", r"\lfloor (n+1)/2\rfloor+1", True),
    (r"\lfloor\sqrt{n-1}\rfloor", r"\lfloor\sqrt{n}\rfloor", False), (r"mn-\lfloor m/2\rfloor", r"nm-\left\lfloor\frac{m}{2}\right\rfloor", True), (r"n \cdot 2^{n-1}", r"n2^{n-1}", True),
    (r"\sqrt{4 \pi G \rho_{0} r_{0}^{2}}", r"2 r_0 \sqrt{\pi G \rho_0}", True), (r"\sqrt{4 \pi G \rho_{0} r_{0}^{2}}", r"2 r \sqrt{\pi G \rho_0}", False),
    (r"\frac{1}{2a}(\exp{a*t} - \exp{-a*t})", r"\frac{e^{at}-e^{-at}}{2a}", True), (r"\frac{1}{2a}(\exp{a*t} - \exp{-a*t})", r"\frac{\sinh(at)}{a}", True),
    (r"I(0) e^{-\frac{t}{RC}}", r"I(0)e^{-t/(RC)}", True), (r"I(0)", "0", False), (r"x^5 - x^4 + x^3 - x^2 + x - 1", r"(x-1)(x^4+x^2+1)", True),
    ("a^{6}", "a^6", True), ("a^{6}", "a^5", False), ("x-4", "4-x", False), (r"100 p^{\frac{1}{2}}", r"100\sqrt{p}", True), (r"\frac{1}{4p^2}", r"\frac{1}{(2p)^2}", True), (r"\frac{2}{3} \frac{C}{S}", r"\frac{2C}{3S}", True),
    ("x", "y", False), ("x", "x", True), ("x^2", "x", False), ("5", "x", False), ("ab+ab^{2}+b", "b(a+ab+1)", True), (r"\frac{K-1}{L}", r"\frac{K}{L}-\frac{1}{L}", True), (r"\alpha", "α", True), (r"\alpha", r"\beta", False),
    (r"\frac{dx}{dy}", r"\frac{x}{y}", False),
]  # fmt: skip

CASES["sets and lists"] = [
    ("1,-2", "-2,1", True), ("1,-2", "1", False), ("1,-2", "1,-2,3", False), ("1,-2", "1,2", False), ("1,-2", r"\{-2, 1\}", True), (r"\{2,3,5\}", r"\{5,3,2\}", True), (r"\{2,3,5\}", "2, 3, 5", True),
    (r"\{2,3,5\}", r"\{2,3\}", False), (r"\{2,3,5\}", r"\{2,3,5,7\}", False), ("1,-2", r"1 \text{ and } -2", True), ("1,-2", "1 or -2", True), ("1,-2", r"x=1, x=-2", True), ("1,-2", r"x=1 \text{ or } x=-2", True),
    ("1,-2", r"x = 1, -2", True), ("1,-2", r"x_1=1, x_2=-2", True), ("1,-2", r"x \in \{1,-2\}", True), (r"2 or $-2$", r"\pm 2", True), (r"1 \pm \sqrt{19}", r"1+\sqrt{19}, 1-\sqrt{19}", True), (r"1 \pm \sqrt{19}", r"1+\sqrt{19}", False),
    (r"1 \pm \sqrt{19}", r"1 ± √19", True), (r"1 \pm \sqrt{19}", r"x = 1 \pm \sqrt{19}", True), (r"\pm 2\sqrt{6}", r"-2\sqrt{6}, 2\sqrt{6}", True), (r"\pm 1, \pm 7", "1,-1,7,-7", True), (r"\pm 1, \pm 7", "1,7", False),
    (r"\{1\pm\sqrt{5},-2\}", r"-2, 1+\sqrt5, 1-\sqrt5", True), (r"\{1\pm\sqrt{5},-2\}", r"-2, 1+\sqrt5", False), (r"\{-2\}", "-2", True), ("-2", r"\{-2\}", True), (r"$48$, $384$", "384, 48", True), (r"$5$ or $9$", "5, 9", True), (r"$5$ or $9$", "5", False),
    (r"$0.05$ and $0.6$", "0.05, 0.6", True), ("3, 5, 7", "3,5,7", True), ("3, 5, 7", "3; 5; 7", True), ("3, 5, 7", "3,5", False), (r"\emptyset", r"\varnothing", True), (r"\emptyset", r"\text{no solution}", True), (r"\emptyset", r"\{\}", True),
    (r"\emptyset", "0", False), (r"\emptyset", r"\{0\}", False), (r"\{1,2\}", "(1,2)", False), (r"\{1,2\}", "(2,1)", False), (r"\{1,2,3\}", "[1,3]", False), ("1,2,3", r"1 \le x \le 3", False), ("16,3,1,1", "1,1,3,16", True), ("16,3,1,1", "16,3,1", False),
    (r"2,-\log _{10} 250", r"2, -3+2\log_{10} 2", True), ("11,19,37,73", "11, 19, 37, 73", True), ("11,19,37,73", "11, 19, 37, 74", False), (r"$a=2$, $a=-6-4 \sqrt{2}$", r"2, -6-4\sqrt{2}", True), (r"f(x)=x,f(x)=-x", "x, -x", True), (r"f(x)=x,f(x)=-x", "f(x)=-x, f(x)=x", True),
    (r"f(x)=x,f(x)=-x", "f(x)=x", False), ("7", "7, 8", False), ("7", r"\{7, 8\}", False), ("7", "7 or 8", False), ("7", r"6, 7, 8", False), ("7", r"7 \text{ or } 8", False), ("2500,7500", "7500 and 2500", True), ("1,2", "12", False), ("12", "1,2", False),
    (r"\frac{1}{2},\sqrt{x}", r"\sqrt{x}, 0.5", True), (r"-3, \pm 2,1", "-3,-2,1,2", True), ("5,-2", r"\left\{-2,5\right\}", True), (r"\{0,2,4,6,8\}", "{0,2,4,6,8}", True), ("1, 2", "1 & 2", False),
]  # fmt: skip

CASES["tuples"] = [
    ("(1,-2)", "(1,-2)", True), ("(1,-2)", "(-2,1)", False), ("(1,-2)", r"\left(1, -2\right)", True), ("(1,-2)", "(1, -2)", True), ("(1,-2)", "x=1, y=-2", True), ("(1,-2)", "x=-2, y=1", False), ("(1,-2)", "(x,y)=(1,-2)", True), ("(1,-2)", "[1,-2]", False),
    ("(1,-2)", "(1,-2,0)", False), ("(1,-2)", "(1,2)", False), ("(1,-2)", "1", False), (r"\left(\frac{3}{2}, -13\right)", "(1.5, -13)", True), (r"\left(3, \frac{\pi}{2}\right)", r"\left(3, \frac{\pi}{2}\right)", True), (r"\left(3, \frac{\pi}{2}\right)", r"\left(\frac{\pi}{2}, 3\right)", False),
    ("(1,8,19), (2,7,13), (4,5,7)", "(4,5,7),(1,8,19),(2,7,13)", True), ("(1,8,19), (2,7,13), (4,5,7)", "(4,5,7),(1,8,19)", False), ("(1,8,19), (2,7,13), (4,5,7)", "(4,5,7),(1,8,19),(2,13,7)", False), ("(6,3),(9,3)", r"\{(9,3),(6,3)\}", True), ("(6,3),(9,3)", r"(6,3) \text{ and } (9,3)", True),
    ("(6,31,-1)", "(6, 31, -1)", True), ("(6,31,-1)", r"\langle 6,31,-1\rangle", True), ("(6,31,-1)", "(6,-1,31)", False), (r"(x, y, z)=(2,2,-1)", "(2,2,-1)", True), (r"(x, y, z)=(2,2,-1)", "x=2, y=2, z=-1", True), (r"(x, y)=(1,0)", "(0,1)", False), ("(2,251,252)", "2,251,252", True), ("(12,3,4), (6,5.4,7.6)", "(6,5.4,7.6), (12,3,4)", True),
    ("(4, \\log_{10} 2)", r"(4, \log 2)", True), ("(1,2)", r"(1,2) \text{ or } (2,1)", False), ("(2, 3)", "2/3", False), ("(-6,6)", r"A = (-6, 6)", True), ("(3,5)", "(3;5)", True),
]  # fmt: skip

CASES["intervals"] = [
    (r"[2,+\infty)", r"[2,\infty)", True), (r"[2,\infty)", r"(2,\infty)", False), (r"[2,\infty)", r"x \ge 2", True), (r"[2,\infty)", "x > 2", False), (r"[2,\infty)", r"x \geqslant 2", True), (r"[2,\infty)", "x>=2", True), (r"[2,\infty)", r"2 \le x", True), (r"[2,\infty)", r"\{x \mid x \ge 2\}", True),
    (r"[2,\infty)", r"\{x : x \ge 2\}", True), (r"[2,\infty)", r"x \in [2,\infty)", True), (r"[2,3)", r"2 \le x < 3", True), (r"[2,3)", r"2 < x \le 3", False), (r"[2,3)", "(2,3]", False), (r"[2,3)", "[2,3]", False), (r"[2,3)", "[2,4)", False), (r"[2,3)", "3 > x >= 2", True), (r"[2,3)", r"\{x|2\leq x<3\}", True),
    (r"\{x|-2\leq x < 1\}", "[-2,1)", True), (r"\{x|-2\leq x < 1\}", "[-2, 1]", False), (r"x \in [-2,7]", "[-2,7]", True), (r"x \in [-2,7]", r"-2 \le x \le 7", True), (r"x \in [-2,7]", "(-2,7)", False), (r"(-\infty,-3)", "x<-3", True), (r"(-\infty,-3)", r"(-\infty,-3]", False), (r"(-\infty,-3)", "(-∞, -3)", True),
    (r"(-\infty, 2) \cup (3, \infty)", r"(3,\infty) \cup (-\infty,2)", True), (r"(-\infty, 2) \cup (3, \infty)", r"x<2 \text{ or } x>3", True), (r"(-\infty, 2) \cup (3, \infty)", "x < 2 or x > 3", True), (r"(-\infty, 2) \cup (3, \infty)", r"(-\infty,2] \cup [3,\infty)", False), (r"(-\infty, 2) \cup (3, \infty)", "(2,3)", False),
    (r"(-\infty, 2) \cup (3, \infty)", r"(-\infty,2)", False), (r"(0,9) \cup (9,36)", r"(0,36) \setminus \{9\}", True), (r"(0,9) \cup (9,36)", "(0,36)", False), (r"(-\infty, 0) \cup\{1\}", r"x<0 \text{ or } x=1", True), (r"(-\infty, 0) \cup(0,1)\cup(1,+\infty)", r"\mathbb{R} \setminus \{0,1\}", True),
    (r"(-\infty, \infty)", r"\mathbb{R}", True), (r"(-\infty, \infty)", r"\text{all real numbers}", True), (r"\mathbb{R}", "all reals", True), (r"(-\infty, 5) \cup (5,\infty)", r"x \ne 5", True), (r"(-\infty, 5) \cup (5,\infty)", r"x \neq -5", False), (r"k \geqslant 2", r"k \ge 2", True), (r"k \geqslant 2", r"[2, \infty)", True),
    (r"k \geqslant 2", "2", False), (r"k \geqslant 2", "k > 2", False), (r"[-\sqrt{2}, \sqrt{2}]", r"|x| \le \sqrt{2}", True), (r"\left[\frac{1}{2}, 8\right]", "[0.5, 8]", True), (r"(1,2)", "]1,2[", True), ("5", "[4, 6]", False), ("5", "(4, 6)", False), ("5", r"4 \le x \le 6", False), ("5", "4 < x < 6", False), (r"(3,4]", r"3<a\le 4", True), ("b > a > c", "c < a < b", True), ("b > a > c", "b > c > a", False),
    (r"[0,1] \cup [1,2]", "[0,2]", True), (r"[0,1) \cup (1,2]", "[0,2]", False), (r"x \le 1 \text{ or } x \ge 2", r"(-\infty,1] \cup [2,\infty)", True),
]  # fmt: skip

CASES["equations"] = [
    ("5", "x=5", True), ("5", "x = 5", True), ("x=5", "5", True), ("x=5", "x=6", False), ("x=5", "y=5", False), ("5", "5=x", True), ("2x+3", "y=2x+3", True), ("y = 2x + 3", "2x+3", True), ("2x+3", "f(x)=2x+3", True), ("f(x)=2x", "2x", True), ("f(x)=2x", "f(x)=3x", False), ("f(n)=n", "f(x)=x", True), ("y = 2x + 3", "y=3+2x", True),
    ("y = 2x + 3", "y-2x=3", True), ("y = 2x + 3", "2x-y+3=0", True), ("y = 2x + 3", "y=2x-3", False), ("y = -2x", "y+2x=0", True), ("5x - 7y + 11z + 4 = 0", "-5x+7y-11z-4=0", True), ("5x - 7y + 11z + 4 = 0", "10x-14y+22z=-8", True), ("5x - 7y + 11z + 4 = 0", "5x-7y+11z-4=0", False), ("5x - 7y + 11z + 4 = 0", "0", False), ("5x - 7y + 11z + 4 = 0", "5x-7y+11z+4", False),
    (r"\frac{x^{2}}{2} - \frac{y^{2}}{2} = 1", "x^2-y^2=2", True), (r"\frac{x^{2}}{2} - \frac{y^{2}}{2} = 1", "1", False), (r"\frac{x^{2}}{2} - \frac{y^{2}}{4} = 1", r"\frac{y^{2}}{4} - \frac{x^{2}}{2} = 1", False), ("(x-1)^2+(y-5)^2=5", "x^2+y^2-2x-10y+21=0", True), ("(x-1)^2+(y-5)^2=5", "5", False), ("(x-1)^2+(y-5)^2=5", "(x+1)^2+(y-5)^2=5", False),
    ("MR=SRMC", "SRMC=MR", True), ("MR=SRMC", "SRMC", False), (r"C=\frac{def}{de+df+ef}", r"\frac{def}{de+df+ef}", True), (r"x^{2}+y^{2}=1", "1", False), ("x=5", "x+3=8", False), ("2", "x+3=5", False), ("2,3", "x^2-5x+6=0", False), ("k=1", "1", True), (r"\frac{3}{6}", r"\frac{3}{6}=\frac{1}{2}", True), (r"\frac{1}{2}", r"\frac{3}{6}=\frac{1}{2}", True), (r"\frac{1}{2}", r"x=\frac{3}{6}=\frac{1}{2}", True),
    ("5", "2+3=5", True), ("6", "2+3=6", False), ("7", "5=7", False), ("12", r"AB=12", True), ("12", r"\text{Area} = 12", True), ("45", r"\angle ABC = 45^\circ", True), (r"x^{\prime}+\frac{r}{V} x-rc=0", r"x'+\frac{r}{V}x=rc", True), (r"\frac{dx}{dt}=kx-a", r"\frac{dx}{dt}=kx-a", True), ("M=2^{N-2}+1", "2^{N-2}+1", True), (r"y=\frac{e}{4}x+\frac{e}{4}", r"y=\frac{e(x+1)}{4}", True),
    (r"g(x)=x^2-2x+2", "(x-1)^2+1", True), ("X_{d}=125-1.25 P", "125-1.25P", True), ("n=k+4", "k+4", True), ("n=k+4", "k-4", False), ("C(h)=4h+4", "4h+4", True), ("x^2-2x-3=0", "2x^2-4x-6=0", True), ("x^2-2x-3=0", "x^2+2x-3=0", False), (r"m_{\max }=n^{2}-n-1", "n^2-n-1", True), (r"\log _{2}(32)=5", "5", True), ("f(n)=n, g(n)=1", "f(n)=n, g(n)=1", True), ("f(n)=n, g(n)=1", "f(n)=1, g(n)=n", False), ("5", "x=", False),
]  # fmt: skip

CASES["hedges"] = [
    ("7", "7 or 8", False), ("7", r"7 \text{ or maybe } 8", False), ("7", "1 to 10", False), ("7", r"1 \le x \le 10", False), ("7", r"\{1,2,3,4,5,6,7\}", False), ("7", "5, 6, 7", False), ("7", "x", False), ("7", "n", False), ("7", "?", False), ("7", r"\text{unknown}", False), ("7", r"x = ?", False), ("7", r"\text{the number of apples}", False),
    ("7", "7?8", False), ("7", r"\ldots", False), ("", "", False), ("", "5", False), ("7", "7/8", False), ("7", "78", False), ("7", "7 8", False), ("55", r"\sum_{k=1}^{10} k", False), (r"\frac{1}{3}", r"\int_0^1 x^2 dx", False), ("6", r"\gcd(12,18)", False), ("2", r"\lim_{x \to 0} \frac{\sin 2x}{x}", False), ("7", r"7 \text{ or } 7", False), ("7", "A number", False), ("7", r"\text{cannot be determined}", False), ("7", r"6 \text{ or } 7", False), ("7", r"7 \pm 1", False), ("7", "not 7", False),
    ("7", r"\text{not } 7", False), ("7", "less than 7", False), ("7", r"\text{at least } 7", False), ("7", "> 7", False), ("7", r"\neq 7", False), ("5", "$5$ or $-5$", False), ("0", r"\text{any}", False), ("12", "answer", False), ("12", r"\text{answer}", False),
]  # fmt: skip

CASES["unicode"] = [
    (r"-\sqrt{3}", "−√3", True), (r"x^2+1", "x²+1", True), (r"2\pi", "2π", True), (r"(-\infty, 0]", "(−∞, 0]", True), (r"3 \le x \le 4", "3 ≤ x ≤ 4", True), ("12", "3×4", True), ("12", "１２", True), ("(1,2)", "（1，2）", True), (r"\frac{3}{4}", "¾", True), (r"x_1", "x₁", True), (r"\{1,2\}", "｛1, 2｝", True), ("12", "12。", True), (r"2\sqrt{3}", "2√3", True), (r"2\sqrt{3}", "2√(3)", True), (r"2\sqrt{3}", "3√2", False), (r"1 \pm \sqrt{2}", "1±√2", True), (r"\theta", "θ", True),
    (r"10^{-3}", "10⁻³", True), (r"A \cup B", "A ∪ B", True), ("5", "5\u200b", True), ("5", "\u00a05\u00a0", True), (r"x \neq 2", "x ≠ 2", True), (r"\sqrt[3]{4}", "∛4", True), ("12", "12\ufeff", True), (r"60^\circ", "60º", True), ("-5", "–5", True), (r"\frac{1}{2}", "1⁄2", True), (r"6 \div 2", "3", True),
]  # fmt: skip

CASES["complex"] = [
    ("1+2i", "2i+1", True), ("1+2i", "1-2i", False), ("1+2i", "1+2 i", True), ("11i", "11 i", True), ("11i", "11 \\cdot i", True), ("11i", "11", False), ("11i", "11j", False), ("6 - 5i", "6-5i", True), ("-2 + 7i", "7i-2", True), ("1+\\sqrt{3} i", "1+i\\sqrt{3}", True), ("1+\\sqrt{3} i", "2e^{i\\pi/3}", True), ("-1", "i^2", True), ("1-i", "\\frac{2}{1+i}", True), ("1-i", "1+i", False), ("4+i", "4+1i", True), ("-i", "\\frac{1}{i}", True), (r"-5 \pm 2i", "-5+2i, -5-2i", True), (r"\frac{e^{2it}}{2+2i}", r"\frac{(1-i)e^{2it}}{4}", True), (r"\pm i", "i, -i", True), ("1+274i", "1+274\\mathrm{i}", True), ("12i", r"12\text{i}", True), (r"\ln 2 + i\pi/3", r"\ln 2+\frac{\pi}{3}i", True), ("2i", "i2", True), ("5", "3+4i", False),
]  # fmt: skip

_M = r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}"
CASES["matrices"] = [
    (_M, r"\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}", True), (_M, r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", True), (_M, r"\begin{pmatrix} 1 & 3 \\ 2 & 4 \end{pmatrix}", False), (_M, r"\left[\begin{array}{cc} 1 & 2 \\ 3 & 4 \end{array}\right]", True), (_M, r"\begin{pmatrix} 1 & 2 \\ 3 & 5 \end{pmatrix}", False), (_M, r"\begin{pmatrix} 1 & 2 & 3 & 4 \end{pmatrix}", False), (_M, r"A = \begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", True),
    (r"\begin{pmatrix} -1/3 \\ 2/3 \\ 5/3 \end{pmatrix}", r"\begin{pmatrix} -\frac{1}{3} \\ \frac{2}{3} \\ \frac{5}{3} \end{pmatrix}", True), (r"\begin{pmatrix} -1/3 \\ 2/3 \\ 5/3 \end{pmatrix}", r"\frac{1}{3}\begin{pmatrix} -1 \\ 2 \\ 5 \end{pmatrix}", True), (r"\begin{pmatrix} -1/3 \\ 2/3 \\ 5/3 \end{pmatrix}", r"\begin{pmatrix} -1/3 \\ 5/3 \\ 2/3 \end{pmatrix}", False), (r"\begin{pmatrix} -2 \\ -14 \\ -7 \end{pmatrix}", r"\begin{bmatrix} -2 \\ -14 \\ -7 \end{bmatrix}", True),
    (r"\begin{pmatrix} -2 \\ -14 \\ -7 \end{pmatrix}", r"\begin{pmatrix} 2 \\ -14 \\ -7 \end{pmatrix}", False), (r"\begin{pmatrix} 16/49 \\ 48/49 \\ 24/49 \end{pmatrix}", r"\begin{pmatrix} \frac{16}{49} \\[2pt] \frac{48}{49} \\[2pt] \frac{24}{49} \end{pmatrix}", True), (r"\begin{pmatrix} -1 & 0 \\ 0 & -1 \end{pmatrix}", r"-\begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}", True), (r"\begin{pmatrix} -1 & 0 \\ 0 & -1 \end{pmatrix}", "-1", False), (_M, r"\begin{vmatrix} 1 & 2 \\ 3 & 4 \end{vmatrix}", False), (_M, "[[1,2],[3,4]]", True), (_M, "[[1,3],[2,4]]", False), (_M, r"\begin{smallmatrix} 1 & 2 \\ 3 & 4 \end{smallmatrix}", True),
]  # fmt: skip

CASES["bases, times, ratios"] = [
    ("204_5", "204_5", True), ("204_5", "204_{5}", True), ("204_5", r"204_{\text{five}}", True), ("204_5", "204_6", False), ("204_5", "203_5", False), ("4210_{5}", "4210_5", True), ("52_8", r"52_{8}", True), ("2516_8", "(2516)_8", True), ("204_5", "54", False), ("40_9", "40_{10}", False), ("204_5", "₅204", False),
    ("1:58 am", "1:58 a.m.", True), ("1:58 am", "1:58 AM", True), ("1:58 am", r"1\!:\!58 \text{ a.m.}", True), ("1:58 am", "1:58 pm", False), ("1:58 am", "01:58 am", True), ("1:58 am", "1:59 am", False), ("5am", "5:00 a.m.", True), ("5am", "5 pm", False), ("5am", r"5 \text{ am}", True), ("2:30 pm", "14:30", True), ("2:30 pm", r"2:30 \text{ PM}", True),
    ("3:4", "3:4", True), ("3:4", "6:8", True), ("3:4", "4:3", False), ("3:4", r"3 : 4", True), ("3:4", r"\frac{3}{4}", True), ("3:4", "3 to 4", True), ("3:4:5", "6:8:10", True), ("3:4:5", "3:5:4", False), (r"\frac{3}{4}", "3:4", True), (r"1:\sqrt{2}", r"\sqrt{2}:2", True),
]  # fmt: skip

CASES["choices"] = [
    ("C", "C", True), ("C", "(C)", True), ("C", r"\text{(C)}", True), ("C", r"\text{C}", True), ("C", "C.", True), ("C", "C)", True), ("C", r"\textbf{(C)}", True), ("C", "C: 12", True), ("C", r"\textbf{(C)}\ 12", True), ("C", "B", False), ("C", "D: 12", False), (r"\text{(C)}", "C", True), (r"\text{(C)}", r"\textbf{C}", True), (r"\text{(C)}", "E", False), ("C", r"\mathrm{C}", True),
    ("C", "Option C", True), ("C", r"\text{Choice C}", True), ("C", "A or C", False), ("C", "A, C", False), ("12", "C: 12", True), ("12", r"\textbf{(C) } 12", True), ("12", "(C) 13", False), ("12", "C. 12", True), ("C", "(c)", True), ("C", "12", False), ("K", "K", True), ("H", "F", False), ("C", "CD", False), ("I,II,III,IV", "I, II, III, IV", True), ("I,II,III,IV", "I, II, III", False), ("C", "**C**", True), ("C", r"\boxed{C}", True), ("C", "ABCDE", False), ("C", "(A)(B)(C)", False),
]  # fmt: skip

CASES["texts"] = [
    (r"\text{Evelyn}", "Evelyn", True), (r"\text{Evelyn}", r"\text{evelyn}", True), (r"\text{Evelyn}", r"\textbf{Evelyn}", True), (r"\text{Evelyn}", r"\text{Briana}", False), (r"\text{east}", "East", True), (r"\text{east}", r"\text{west}", False), (r"\text{even}", "even", True), (r"\text{even}", r"\text{odd}", False), (r"\text{ellipse}", r"\text{an ellipse}", True), (r"\text{ellipse}", "hyperbola", False), ("Quadrant I", r"\text{Quadrant I}", True), ("Quadrant I", r"\text{Quadrant II}", False),
    (r"\text{a necessary but not a sufficient condition}", r"\text{necessary but not sufficient condition}", True), (r"\text{a necessary but not a sufficient condition}", r"\text{sufficient but not necessary condition}", False), ("yes", "Yes", True), ("yes", "no", False), ("No", r"\text{No}", True), ("True", r"\text{true}", True), ("True", "False", False), (r"\text{Evelyn}", r"\text{Evelyn or Briana}", False), (r"\text{Evelyn}", "0", False), ("0", r"\text{Evelyn}", False), (r"\text{Navin}", r"\mathrm{Navin}", True), (r"\text{Navin}", r"\text{Navin.}", True), (r"\text{even}", "2", False), (r"\text{no solution}", r"\text{No solution}", True), (r"\text{does not exist}", "DNE", True), (r"\text{infinitely many}", r"\text{infinitely many solutions}", True), ("Monday", r"\text{Tuesday}", False), (r"\text{isosceles}", r"\text{Isosceles}", True), ("A's", "B's", False), (r"\text{not even}", r"\text{even}", False), (r"\text{even}", r"\text{not even}", False),
]  # fmt: skip

CASES["olympiad"] = [
    (r"$\frac{32}{9}$,$\frac{1}{2}$", r"\frac{1}{2}, \frac{32}{9}", True), (r"$\angle B E A_{1}=90$,$\angle A E B_{1}=90$", r"90, 90", True), (r"$90^{\circ}$,$60^{\circ}$", "60°, 90°", True), (r"$x=\frac{1}{6} \pi+\pi k, \frac{1}{3} \pi+\pi k$", r"\frac{\pi}{6}+k\pi, \frac{\pi}{3}+k\pi", True), (r"$(2+\sqrt{2}, 1+\sqrt{2})$", r"(2+\sqrt{2},\,1+\sqrt{2})", True), (r"$10^{3},10$", "10, 1000", True), (r"$100,\frac{1}{100}$", "0.01, 100", True), (r"$2^{-2 / 3}$, $8$", r"8, 2^{-2/3}", True), (r"$(-\infty, 0) \cup\{1\}$.", r"(-\infty,0)\cup\{1\}", True),
    ("-2,-2", "-2,-2", True), ("5,1", "1,5", True), (r"$1.68,0.45$", "0.45, 1.68", True), (r"$(\frac{1}{4}, \frac{1}{27})$", r"(1/4, 1/27)", True), (r"$(\frac{1}{4}, \frac{1}{27})$", r"(1/27, 1/4)", False), (r"$d=\frac{1+\sqrt{1+8 n}}{2}$", r"\frac{1+\sqrt{8n+1}}{2}", True), (r"$\frac{d !}{2 k(d-k) !}$", r"\frac{d!}{2k(d-k)!}", True), (r"$\left\lfloor\log _{2} n\right\rfloor+1$", r"\lfloor \log_2 n\rfloor + 1", True), (r"$2021 \cdot 505 \cdot 337$", "343914885", False), (r"$2021 \cdot 505 \cdot 337$", str(2021 * 505 * 337), True), (r"$f(x)=-1$,$f(x)=x+1$", r"f(x)=x+1 \text{ or } f(x)=-1", True), (r"$k=2 n-1$", "k=2n-1", True), (r"$\quad 2 \sqrt{2} $", r"2\sqrt2", True), ("20 minutes", "20", True), (r"$166$ cm^2", "166", True),
]  # fmt: skip


def response(answer: str) -> str:
    """The response that puts `answer` forward."""
    return answer.removeprefix("RAW ") if answer.startswith("RAW ") else rf"Thus the result is \boxed{{{answer}}}."


def rows() -> list[tuple[str, str, str, bool]]:
    """(kind, gold, response, right) for all cases."""
    return [(kind, gold, response(answer), right) for kind, table in CASES.items() for gold, answer, right in table]
